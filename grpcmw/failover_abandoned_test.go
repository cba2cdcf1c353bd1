package grpcmw_test

import (
	"context"
	"errors"
	"maps"
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/breaker"
	"github.com/holdfast-go/holdfast/call"
	"github.com/holdfast-go/holdfast/grpcmw"
)

// D078, B1: a stream that has moved on ends where it is, by whatever comes first, and
// leaves nothing behind at any upstream.
func TestD078_AnEndLeavesNothingAtAnyUpstream(t *testing.T) { // G3, K2
	for name, c := range map[string]struct {
		desc   *grpc.StreamDesc
		answer hit
		end    func(t *testing.T, s grpc.ClientStream, cancel func())
		class  call.Class
	}{
		"one of ten messages is read": {serverStream, messages(10, 10*time.Millisecond, nil), func(t *testing.T, s grpc.ClientStream, cancel func()) {
			require.NoError(t, s.RecvMsg(new(wrapperspb.StringValue)))
			cancel() // and the stream is not touched any more
		}, call.Canceled},
		"no CloseSend": {bidiStream, messages(10, 0, nil), func(t *testing.T, s grpc.ClientStream, _ func()) {
			texts, err := readAll(s)
			require.NoError(t, err)
			require.Len(t, texts, 10)
		}, call.OK},
		"a failure before a message, nobody reading": {bidiStream, fail(codes.Unavailable), func(_ *testing.T, _ grpc.ClientStream, cancel func()) {
			cancel()
		}, call.Canceled},
		"what cannot be sent": {bidiStream, silent, func(t *testing.T, s grpc.ClientStream, _ func()) {
			require.Equal(t, codes.Internal, status.Code(s.SendMsg(7)))
		}, call.Permanent},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				a, b := play(t, silent), play(t, c.answer)
				a.Wire.Refuse(true)
				f, k, seen := followed(t, with(func(p *holdfast.Policy) { readOnly(p); oneAttempt(p); single(p) }), a, b)
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				stream, err := open(ctx, f, c.desc)
				require.NoError(t, err)
				require.Equal(t, 1, inUse(k), "a has its permit back")
				c.end(t, stream, cancel)
				time.Sleep(100 * time.Millisecond)
				attempts, calls, open := seen.take()
				require.Equal(t, []string{"a unavailable", "b " + c.class.String()}, attempts)
				require.Equal(t, []call.Class{c.class}, calls)
				require.Zero(t, open, "the spans have ended")
				require.Zero(t, inUse(k), "the permits are free")
				require.Zero(t, breakerOf(t, k, "b").Counts().Failures)
				require.Zero(t, b.runningCount())
			})
		})
	}
}

// D078: callers who walk away from thousands of streams, each of which has moved on, leave
// no goroutine behind.
func TestD078_ThousandsThatMovedOnAndWereAbandoned(t *testing.T) {
	bubble(t, func(t *testing.T) {
		a, b := play(t, fail(codes.Unavailable)), play(t, messages(10, time.Millisecond, nil))
		f, k, seen := followed(t, with(func(p *holdfast.Policy) { readOnly(p); oneAttempt(p); p.Breaker = breaker.Off() }), a, b)
		abandon := func(n int) {
			for i := range n {
				ctx, cancel := context.WithCancel(t.Context())
				stream, err := open(ctx, f, serverStream)
				require.NoError(t, err)
				if i%2 == 0 {
					require.NoError(t, stream.RecvMsg(new(wrapperspb.StringValue))) // b's
				}
				cancel()
				if i%8 == 7 {
					synctest.Wait() // ten may be open at once
				}
			}
			time.Sleep(time.Second) // the handlers sleep a little themselves
		}
		abandon(10) // the connections are up now
		before := runtime.NumGoroutine()
		abandon(5000)
		require.LessOrEqual(t, runtime.NumGoroutine(), before+1, "the runtime may have started one of its own")
		require.Zero(t, a.runningCount()+b.runningCount()+inUse(k))
		attempts, calls, open := seen.take()
		require.Zero(t, open)
		require.Len(t, calls, 5010)
		require.Len(t, attempts, 5010+2505, "those that were read have moved on")
	})
}

// broken is a connection that opens no stream.
type broken struct{ grpc.ClientConnInterface }

var errBroken = errors.New("opens nothing")

func (broken) NewStream(context.Context, *grpc.StreamDesc, string, ...grpc.CallOption) (grpc.ClientStream, error) {
	return nil, errBroken
}

// D078: upstreams that open no stream leave nothing behind, and each is booked.
func TestD078_UpstreamsThatOpenNothing(t *testing.T) {
	bubble(t, func(t *testing.T) {
		var seen follower
		k, err := holdfast.New(holdfast.Config{Default: with(func(p *holdfast.Policy) { readOnly(p); oneAttempt(p); single(p) }), Hooks: seen.hooks()})
		require.NoError(t, err)
		f, err := grpcmw.Failover(k, []grpcmw.Upstream{{Conn: broken{}, Name: "a"}, {Conn: broken{}, Name: "b"}})
		require.NoError(t, err)
		for range 3 {
			ends := 0
			_, err = open(t.Context(), f, serverStream, grpc.OnFinish(func(error) { ends++ }))
			require.ErrorIs(t, err, errBroken)
			require.Equal(t, 1, ends)
			attempts, calls, open := seen.take()
			require.Equal(t, []string{"a server_fault", "b server_fault"}, attempts)
			require.Equal(t, []call.Class{call.ServerFault}, calls)
			require.Zero(t, open)
			require.Zero(t, inUse(k))
		}
	})
}

// noting keeps the contexts of the streams that it opens.
type noting struct {
	grpc.ClientConnInterface
	live *[]context.Context
	t    *testing.T
}

func (n noting) NewStream(ctx context.Context, desc *grpc.StreamDesc, m string, opts ...grpc.CallOption) (grpc.ClientStream, error) {
	for _, before := range *n.live {
		require.Error(n.t, before.Err(), "the attempt before is cancelled first")
	}
	*n.live = append(*n.live, ctx)
	return n.ClientConnInterface.NewStream(ctx, desc, m, opts...)
}

// D080, F6: an attempt that is given up is cancelled before the next opens, whichever
// upstream that is at, and one stream's worth is left.
func TestD080_AHopThatIsGivenUpIsCancelledFirst(t *testing.T) {
	bubble(t, func(t *testing.T) {
		live := func(s grpc.ServerStream) error { return errors.Join(s.SendMsg(wrapperspb.String("live")), silent(s)) }
		late := after(30*time.Millisecond, fail(codes.Unavailable)) // its context would live on
		a, b := play(t, live, silent, late, silent, silent), play(t, silent, late, silent, live)
		k := newKit(t, with(func(p *holdfast.Policy) {
			readOnly(p)
			single(p)
			p.Retry.MaxAttempts = 4
			p.Breaker = breaker.Off()
			p.Timeout.FirstMessage = 50 * time.Millisecond
		}))
		toA, toB := a.Dial(), b.Dial()
		toB.Connect()
		var opened []context.Context
		f, err := grpcmw.Failover(k, []grpcmw.Upstream{
			{Conn: noting{toA, &opened, t}, Name: "a"}, {Conn: noting{toB, &opened, t}, Name: "b"},
		})
		require.NoError(t, err)
		read := func(ctx context.Context) {
			stream, err := open(ctx, f, serverStream)
			require.NoError(t, err)
			m := new(wrapperspb.StringValue)
			require.NoError(t, stream.RecvMsg(m))
			require.Equal(t, "live", m.GetValue())
		}
		ctx, cancel := context.WithCancel(t.Context())
		read(ctx)
		synctest.Wait()
		one := runtime.NumGoroutine()
		cancel()
		synctest.Wait()

		read(t.Context())
		synctest.Wait()
		require.Len(t, opened, 1+8)
		require.Equal(t, []int{1 + 4, 4}, hitsOf(a, b))
		require.Equal(t, []int{1 + 3, 2}, []int{a.canceled, b.canceled}, "five of the call, and the one before it")
		require.Equal(t, []int{0, 1}, []int{a.runningCount(), b.runningCount()})
		require.Equal(t, 1, maps.Collect(k.Bulkheads())["b"].InUse())
		require.Equal(t, 1, inUse(k))
		require.LessOrEqual(t, runtime.NumGoroutine(), one+1, "one stream's worth; the runtime may have started one of its own")
	})
}
