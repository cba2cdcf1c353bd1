package grpcmw_test

import (
	"context"
	"io"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/bulkhead"
	"github.com/holdfast-go/holdfast/call"
	"github.com/holdfast-go/holdfast/retry"
)

// lateHeader lets Header return only when the gate opens.
type lateHeader struct {
	grpc.ClientStream
	gate chan struct{}
}

func (h *lateHeader) Header() (metadata.MD, error) {
	md, err := h.ClientStream.Header()
	<-h.gate
	return md, err
}

// deadSend cannot send.
type deadSend struct{ grpc.ClientStream }

func (s *deadSend) SendMsg(any) error { return status.Error(codes.Unavailable, "found no server") }

// panickingHeader panics in Header when the gate opens.
type panickingHeader struct {
	grpc.ClientStream
	gate chan struct{}
}

func (p *panickingHeader) Header() (metadata.MD, error) { <-p.gate; panic("boom") }

// G3: with Header and RecvMsg on two goroutines, the header is that of the attempt
// whose messages come.
func TestG3_HeaderIsOfTheAttemptThatAnswers(t *testing.T) {
	bubble(t, func(t *testing.T) {
		which := func(name string, then hit) hit {
			return func(ss grpc.ServerStream) error {
				if err := ss.SendHeader(metadata.Pairs("which", name)); err != nil {
					return err
				}
				time.Sleep(5 * time.Millisecond)
				return then(ss)
			}
		}
		s := play(t, which("first", func(grpc.ServerStream) error { return errDown }), which("second", messages(1, 0, nil)))
		gate := make(chan struct{})
		var n atomic.Int32
		inner := func(ctx context.Context, d *grpc.StreamDesc, cc *grpc.ClientConn, m string, st grpc.Streamer, o ...grpc.CallOption) (grpc.ClientStream, error) {
			cs, err := st(ctx, d, cc, m, o...)
			if err != nil {
				return nil, err
			}
			if n.Add(1) > 1 {
				return cs, nil
			}
			return &lateHeader{cs, gate}, nil
		}
		cc := s.connect(t, newKit(t, with(readOnly)), grpc.WithChainStreamInterceptor(inner))
		stream, err := open(t.Context(), cc, serverStream)
		require.NoError(t, err)
		got := make(chan metadata.MD, 1)
		go func() { md, _ := stream.Header(); got <- md }()
		synctest.Wait()
		m := new(wrapperspb.StringValue)
		go func() { time.Sleep(7 * time.Millisecond); close(gate) }() // amid the back-off
		require.NoError(t, stream.RecvMsg(m))
		require.Equal(t, []string{"second"}, (<-got)["which"])
	})
}

// T4: a limit that cut the attempt off is found by Header before gRPC has said so.
func TestT4_HeaderFindsALimitThatHasJustPassed(t *testing.T) {
	bubble(t, func(t *testing.T) {
		s := play(t, silent, messages(1, 0, nil))
		inner := func(ctx context.Context, d *grpc.StreamDesc, cc *grpc.ClientConn, m string, st grpc.Streamer, o ...grpc.CallOption) (grpc.ClientStream, error) {
			return st(ctx, d, cc, m, append([]grpc.CallOption{grpc.OnFinish(func(error) { time.Sleep(time.Millisecond) })}, o...)...)
		}
		cc := s.connect(t, newKit(t, with(func(p *holdfast.Policy) { readOnly(p); p.Timeout.FirstMessage = 50 * time.Millisecond })), grpc.WithChainStreamInterceptor(inner))
		stream, err := open(t.Context(), cc, serverStream)
		require.NoError(t, err)
		md, err := stream.Header()
		require.NoError(t, err)
		require.NotNil(t, md)
		texts, err := readAll(stream)
		require.NoError(t, err)
		require.Equal(t, []string{"a"}, texts)
	})
}

// G3: what a failed first send says of a connection is what a failed opening says.
func TestG3_AFailedFirstSendIsRepeated(t *testing.T) {
	bubble(t, func(t *testing.T) {
		s := play(t, messages(1, 0, nil))
		var n atomic.Int32
		inner := func(ctx context.Context, d *grpc.StreamDesc, cc *grpc.ClientConn, m string, st grpc.Streamer, o ...grpc.CallOption) (grpc.ClientStream, error) {
			cs, err := st(ctx, d, cc, m, o...)
			if err != nil {
				return nil, err
			}
			if n.Add(1) > 1 {
				return cs, nil
			}
			return &deadSend{cs}, nil
		}
		cc := s.connect(t, newKit(t, with(readOnly)), grpc.WithChainStreamInterceptor(inner))
		stream, err := open(t.Context(), cc, serverStream)
		require.NoError(t, err)
		_, err = readAll(stream)
		require.NoError(t, err)
	})
}

// G3: the caller's targets are filled before a method tells of the end.
func TestG3_TargetsAreFilledBeforeTheEndIsSeen(t *testing.T) {
	bubble(t, func(t *testing.T) {
		s := play(t, func(g grpc.ServerStream) error {
			_ = g.SendHeader(metadata.Pairs("which", "first"))
			return silent(g)
		})
		cc := s.connect(t, newKit(t, with(func(p *holdfast.Policy) {
			readOnly(p)
			p.Classify = func(_ context.Context, _ call.Info, r call.Result) call.Result {
				time.Sleep(2 * time.Millisecond)
				return r
			}
		})))
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		var header metadata.MD
		ends := 0
		stream, err := open(ctx, cc, serverStream, grpc.Header(&header), grpc.OnFinish(func(error) { ends++ }))
		require.NoError(t, err)
		time.Sleep(time.Millisecond)
		cancel()
		synctest.Wait()
		require.Equal(t, codes.Canceled, status.Code(stream.RecvMsg(new(wrapperspb.StringValue))))
		require.Equal(t, []string{"first"}, header["which"])
		time.Sleep(5 * time.Millisecond)
		require.Equal(t, 1, ends)
	})
}

// R6: the token of a repeat that the bulkhead refuses comes back.
func TestR6_ARefusedRepeatReturnsItsToken(t *testing.T) {
	bubble(t, func(t *testing.T) {
		s := play(t, messages(0, 0, errDown), silent, messages(0, 0, errDown), messages(1, 0, nil))
		k := newKit(t, with(func(p *holdfast.Policy) {
			readOnly(p)
			p.Bulkhead = &bulkhead.Config{Limit: 1}
			p.Retry.Budget = retry.Budget{PerSecond: 1e-6, Cap: 1, Initial: 1}
		}))
		cc := s.connect(t, k)
		a, err := open(t.Context(), cc, serverStream)
		require.NoError(t, err)
		got := make(chan error)
		go func() { _, err := readAll(a); got <- err }()
		synctest.Wait() // in its back-off, without a permit
		ctx, cancel := context.WithCancel(t.Context())
		_, err = open(ctx, cc, serverStream) // takes the only permit
		require.NoError(t, err)
		err = <-got
		require.ErrorIs(t, err, bulkhead.ErrFull)
		require.Equal(t, 2, s.hitCount())
		cancel()
		synctest.Wait()
		b, err := open(t.Context(), cc, serverStream)
		require.NoError(t, err)
		_, err = readAll(b)
		require.NoError(t, err, "the token of the repeat that was not made")
	})
}

// B1: a panic in one method ends a call that another one is about to repeat.
func TestB1_APanicBesideABackOff(t *testing.T) {
	bubble(t, func(t *testing.T) {
		s := play(t, messages(0, 0, errDown), messages(1, 0, nil))
		gate := make(chan struct{})
		inner := func(ctx context.Context, d *grpc.StreamDesc, cc *grpc.ClientConn, m string, st grpc.Streamer, o ...grpc.CallOption) (grpc.ClientStream, error) {
			cs, err := st(ctx, d, cc, m, o...)
			if err != nil {
				return nil, err
			}
			return &panickingHeader{cs, gate}, nil
		}
		cc := s.connect(t, newKit(t, with(readOnly)), grpc.WithChainStreamInterceptor(inner))
		var ends []error
		stream, err := open(t.Context(), cc, serverStream, grpc.OnFinish(func(err error) { ends = append(ends, err) }))
		require.NoError(t, err)
		done := make(chan any, 1)
		go func() {
			defer func() { done <- recover() }()
			_, _ = stream.Header()
		}()
		synctest.Wait() // it is inside, with the first attempt
		go func() { time.Sleep(5 * time.Millisecond); close(gate) }()

		err = stream.RecvMsg(new(wrapperspb.StringValue))
		require.Equal(t, "boom", <-done)
		require.Error(t, err, "the call has ended with a panic")
		require.NotEqual(t, io.EOF, err)
		require.Len(t, ends, 1)
		require.Error(t, ends[0])
		require.Equal(t, 1, s.hitCount())
	})
}
