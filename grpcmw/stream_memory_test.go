package grpcmw_test

import (
	"io"
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/holdfast-go/holdfast"
)

// A stream keeps nothing of what has passed through it: the heap is as large after
// 100,000 messages each way as after 10,000.
func TestG3_MemoryStaysFlatOverManyMessages(t *testing.T) {
	s := play(t, func(ss grpc.ServerStream) error {
		m := new(wrapperspb.StringValue)
		for {
			if err := ss.RecvMsg(m); err == io.EOF {
				return nil
			} else if err != nil {
				return err
			}
			if err := ss.SendMsg(m); err != nil {
				return err
			}
		}
	})
	cc := s.connect(t, newKit(t, with(func(p *holdfast.Policy) { readOnly(p) })))
	stream, err := open(t.Context(), cc, bidiStream)
	require.NoError(t, err)
	out, in := wrapperspb.String(string(make([]byte, 100))), new(wrapperspb.StringValue)
	pass := func(n int) {
		sent := make(chan error, 1)
		go func() {
			for range n {
				if err := stream.SendMsg(out); err != nil {
					sent <- err
					return
				}
			}
			sent <- nil
		}()
		for range n {
			if err := stream.RecvMsg(in); err != nil {
				t.Error(err)
				return
			}
		}
		require.NoError(t, <-sent)
	}
	heap := func() int64 {
		runtime.GC()
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return int64(m.HeapAlloc)
	}
	pass(10_000)
	before := heap()
	pass(90_000)
	grown := heap() - before
	t.Logf("the heap has grown by %d bytes over 90,000 messages each way", grown)
	require.Less(t, grown, int64(200_000), "2 bytes a message would be more")
	require.NoError(t, stream.CloseSend())
	require.Equal(t, io.EOF, stream.RecvMsg(in))
}
