package grpcmw_test

import (
	"context"
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/protobuf/types/known/wrapperspb"
)

// collectUntil runs the collector until something has come about. It is for
// outside bubbles: clean-ups run on a goroutine of the runtime's.
func collectUntil(t *testing.T, ok func() bool) {
	t.Helper()
	require.Eventually(t, func() bool {
		runtime.GC()
		return ok()
	}, 10*time.Second, 5*time.Millisecond)
}

// A stream that its caller drops, on a context that can never end, is ended by
// the collector: its permit comes back and the server sees it end.
func TestB1_ADroppedStreamIsCollected(t *testing.T) {
	s := play(t, silent)
	cc := s.connect(t, newKit(t, with(single)))
	ends := make(chan error, 1)
	func() {
		_, err := open(context.Background(), cc, bidiStream, grpc.OnFinish(func(err error) { ends <- err }))
		require.NoError(t, err)
	}()
	collectUntil(t, func() bool {
		next, err := open(t.Context(), cc, serverStream)
		runtime.KeepAlive(next)
		return err == nil
	})
	require.Eventually(t, func() bool { return len(ends) == 1 }, 10*time.Second, time.Millisecond)
	require.Error(t, <-ends)
	require.Eventually(t, func() bool { return s.runningCount() == 1 }, 10*time.Second, time.Millisecond)
}

// One that is still read is not, though nobody refers to it but the read.
func TestB1_AStreamBeingReadIsNotCollected(t *testing.T) {
	messageSent := make(chan struct{})
	s := play(t, func(ss grpc.ServerStream) error {
		select {
		case <-messageSent:
		case <-ss.Context().Done():
		}
		return ss.SendMsg(wrapperspb.String("here"))
	})
	cc := s.connect(t, newKit(t, with(single)))
	got := make(chan error, 1)
	go func() {
		stream, err := open(context.Background(), cc, serverStream)
		if err == nil {
			err = stream.RecvMsg(new(wrapperspb.StringValue))
		}
		got <- err
	}()
	require.Eventually(t, func() bool { return s.runningCount() == 1 }, 10*time.Second, time.Millisecond)
	for range 10 {
		runtime.GC()
		time.Sleep(time.Millisecond) // lets a clean-up run that must not
	}
	close(messageSent)
	require.NoError(t, <-got)
}
