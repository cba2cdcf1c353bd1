package grpcmw_test

import (
	"context"
	"io"
	"maps"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/breaker"
	"github.com/holdfast-go/holdfast/bulkhead"
	"github.com/holdfast-go/holdfast/call"
	"github.com/holdfast-go/holdfast/grpcmw"
	"github.com/holdfast-go/holdfast/timeout"
)

// follower is told of calls and attempts as a tracer is: each has a begin and an end.
type follower struct {
	mu       sync.Mutex
	open     int // calls and attempts that have not ended
	attempts []string
	calls    []call.Class
}

func (f *follower) hooks() holdfast.Hooks {
	return holdfast.Hooks{
		Call: func(context.Context, call.Info) (context.Context, func(holdfast.CallEnd)) {
			f.begin()
			return nil, func(e holdfast.CallEnd) { f.end(func() { f.calls = append(f.calls, e.Result.Class) }) }
		},
		Attempt: func(_ context.Context, a call.Attempt) (context.Context, func(call.Result)) {
			f.begin()
			return nil, func(r call.Result) {
				f.end(func() { f.attempts = append(f.attempts, a.Info.Target+" "+r.Class.String()) })
			}
		},
	}
}

func (f *follower) begin() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.open++
}

func (f *follower) end(note func()) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.open--
	note()
}

// take returns what has ended since it was asked last, and how much has not.
func (f *follower) take() (attempts []string, calls []call.Class, open int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	attempts, calls = f.attempts, f.calls
	f.attempts, f.calls = nil, nil
	return attempts, calls, f.open
}

// followed puts a failover over servers, and follows its calls.
func followed(t *testing.T, p holdfast.Policy, servers ...*script) (*grpcmw.FailoverConn, *holdfast.Kit, *follower) {
	t.Helper()
	var f follower
	k, err := holdfast.New(holdfast.Config{Default: p, Hooks: f.hooks()})
	require.NoError(t, err)
	return over(t, k, servers...), k, &f
}

func inUse(k *holdfast.Kit) (n int) {
	for _, b := range k.Bulkheads() {
		n += b.InUse()
	}
	return n
}

// D075, F6: each hop has an opening limit of its own, and what was opened outlives it; the
// caller's deadline ends it.
func TestD075_AStreamOutlivesTheLimitOfItsHop(t *testing.T) { // T1, T3
	bubble(t, func(t *testing.T) {
		ten := func(s grpc.ServerStream) error { // in 600 ms
			time.Sleep(30 * time.Millisecond)
			if err := s.SendMsg(wrapperspb.String("a")); err != nil {
				return err
			}
			if err := messages(9, 60*time.Millisecond, nil)(s); err != nil {
				return err
			}
			time.Sleep(30 * time.Millisecond)
			return nil
		}
		a, b := play(t, ten), play(t, ten)
		a.Wire.Hang(true)
		f, _, seen := followed(t, with(func(p *holdfast.Policy) {
			brittle(p)
			p.Timeout = &timeout.Limits{Attempt: 50 * time.Millisecond, Total: 120 * time.Millisecond}
		}), a, b)
		begin, upstream := time.Now(), ""
		stream, err := open(t.Context(), f, serverStream, grpcmw.ReportUpstream(&upstream))
		require.NoError(t, err)
		require.Equal(t, 50*time.Millisecond, time.Since(begin), "nobody took a's connection")
		require.Equal(t, "b", upstream)
		texts, err := readAll(stream)
		require.NoError(t, err)
		require.Len(t, texts, 10)
		require.Equal(t, 650*time.Millisecond, time.Since(begin))
		attempts, _, _ := seen.take()
		require.Equal(t, []string{"a timed_out", "b ok"}, attempts)

		begin = time.Now()
		ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
		defer cancel()
		stream, err = open(ctx, f, serverStream) // a is passed over
		require.NoError(t, err)
		texts, err = readAll(stream)
		require.Equal(t, codes.DeadlineExceeded, status.Code(err))
		require.NotErrorIs(t, err, timeout.ErrExceeded)
		require.Len(t, texts, 5)
		require.Equal(t, 300*time.Millisecond, time.Since(begin))
		attempts, _, open := seen.take()
		require.Equal(t, []string{"b timed_out"}, attempts)
		require.Zero(t, open)
		require.Equal(t, []int{0, 2}, hitsOf(a, b))
	})
}

// D077, F6: io.EOF is a success of the upstream that has said it, and of no other.
func TestD077_EOFIsASuccessOfItsUpstream(t *testing.T) {
	bubble(t, func(t *testing.T) {
		a, b := play(t, fail(codes.Unavailable)), play(t, messages(2, 0, nil))
		f, k, seen := followed(t, with(func(p *holdfast.Policy) { brittle(p); p.Breaker.Window = breaker.Window{Calls: 50} }), a, b)
		for range 20 {
			stream, err := open(t.Context(), f, serverStream)
			require.NoError(t, err)
			texts, err := readAll(stream)
			require.NoError(t, err)
			require.Len(t, texts, 2)
			require.Equal(t, io.EOF, stream.RecvMsg(new(wrapperspb.StringValue)))
		}
		attempts, calls, open := seen.take()
		require.Zero(t, open)
		require.Equal(t, "a unavailable", attempts[0])
		require.Len(t, attempts, 21)
		for _, attempt := range attempts[1:] {
			require.Equal(t, "b ok", attempt)
		}
		require.Len(t, calls, 20)
		for _, class := range calls {
			require.Equal(t, call.OK, class)
		}
		counts := breakerOf(t, k, "b").Counts()
		require.Equal(t, []int{20, 0}, []int{counts.Results, counts.Failures})
		require.Equal(t, []int{1, 20}, hitsOf(a, b))
	})
}

// D077, G3: io.EOF from SendMsg is no end and no move; what RecvMsg says then is booked,
// once, with the upstream whose stream it was.
func TestD077_EOFFromSendMsgIsNoMove(t *testing.T) {
	bubble(t, func(t *testing.T) {
		a, b, c := play(t, say("a")), play(t, fail(codes.Unavailable)), play(t, say("c"))
		a.Wire.Refuse(true)
		f, k, seen := followed(t, with(func(p *holdfast.Policy) { readOnly(p); oneAttempt(p) }), a, b, c)
		stream, err := open(t.Context(), f, bidiStream)
		require.NoError(t, err)
		synctest.Wait()
		for err == nil {
			err = stream.SendMsg(wrapperspb.String("x"))
			synctest.Wait()
		}
		require.Equal(t, io.EOF, err)
		attempts, _, open := seen.take()
		require.Equal(t, []string{"a unavailable"}, attempts)
		require.Equal(t, 2, open, "the call and its attempt at b go on")
		for range 3 {
			require.Equal(t, codes.Unavailable, status.Code(stream.RecvMsg(new(wrapperspb.StringValue))))
		}
		attempts, calls, open := seen.take()
		require.Equal(t, []string{"b unavailable"}, attempts)
		require.Equal(t, []call.Class{call.Unavailable}, calls)
		require.Zero(t, open)
		require.Equal(t, 1, breakerOf(t, k, "b").Counts().Failures)
		require.Equal(t, []int{0, 1, 0}, hitsOf(a, b, c))
	})
}

// F6, G3: a header that was handed out is a delivery: the stream stays where it is, and so
// does its failure.
func TestF6_AHeaderThatWasDeliveredStays(t *testing.T) {
	bubble(t, func(t *testing.T) {
		named := func(s grpc.ServerStream) error {
			if err := s.SendHeader(metadata.Pairs("which", "a")); err != nil {
				return err
			}
			time.Sleep(time.Millisecond)
			return errDown
		}
		for header, want := range map[bool][]int{true: {1, 0}, false: {1, 1}} {
			a, b := play(t, named), play(t, messages(1, 0, nil))
			f, _, seen := followed(t, with(func(p *holdfast.Policy) { readOnly(p); oneAttempt(p) }), a, b)
			stream, err := open(t.Context(), f, serverStream)
			require.NoError(t, err)
			if header {
				md, err := stream.Header()
				require.NoError(t, err)
				require.Equal(t, []string{"a"}, md.Get("which"))
			}
			_, err = readAll(stream)
			require.Equal(t, header, status.Code(err) == codes.Unavailable, err)
			require.Equal(t, want, hitsOf(a, b))
			_, _, open := seen.take()
			require.Zero(t, open)
		}
	})
}

// B14, F6: a model that fails is passed over alone, for its channel answers for the other
// one.
func TestB14_AModelThatFailsIsPassedOverAlone(t *testing.T) {
	each(t, func(t *testing.T, call way) {
		bad, good, b := play(t, fail(codes.Unavailable)), play(t, say("m2")), play(t, say("b"))
		k := newKit(t, with(func(p *holdfast.Policy) {
			readOnly(p)
			oneAttempt(p)
			p.Breaker = &breaker.Config{Window: breaker.Window{Calls: 10}, MinCalls: 4, FailureRate: 0.75, Scope: breaker.TwoLevel, Jitter: breaker.NoJitter}
		}))
		f, err := grpcmw.Failover(k, []grpcmw.Upstream{
			{Conn: bad.Dial(), Name: "A", Resource: "m1"}, {Conn: good.Dial(), Name: "A", Resource: "m2"}, {Conn: b.Dial(), Name: "B", Resource: "m1"},
		})
		require.NoError(t, err)
		for range 20 {
			upstream, err := call(t.Context(), f)
			require.NoError(t, err)
			require.Equal(t, "A|m2", upstream)
		}
		require.Equal(t, []int{4, 20, 0}, hitsOf(bad, good, b))
		require.Equal(t, breaker.Open, breakerOf(t, k, "A|m1").State())
		require.Equal(t, breaker.Closed, breakerOf(t, k, "A").State())
	})
}

// A stream moves on only while nothing was delivered: D076, D079, D080 with several
// upstreams.
func TestD079_AStreamMovesOnOnlyBeforeItsFirstMessage(t *testing.T) {
	bubble(t, func(t *testing.T) {
		down := status.Error(codes.Unavailable, "cut")
		a, b := play(t, messages(0, 0, down), messages(2, 0, down), silent), play(t, messages(3, 0, nil))
		var seen verdicts
		k := newKit(t, with(func(p *holdfast.Policy) { readOnly(p); oneAttempt(p); seen.note(p) }))
		f := over(t, k, a, b)
		upstream := ""
		stream, err := open(t.Context(), f, serverStream, grpcmw.ReportUpstream(&upstream))
		require.NoError(t, err)
		texts, err := readAll(stream)
		require.NoError(t, err)
		require.Equal(t, "abc", strings.Join(texts, ""))
		require.Equal(t, "b", upstream)
		require.Equal(t, []call.Class{call.Unavailable, call.OK}, seen.take())

		stream, err = open(t.Context(), f, serverStream, grpcmw.ReportUpstream(&upstream))
		require.NoError(t, err)
		texts, err = readAll(stream)
		require.Equal(t, codes.Unavailable, status.Code(err))
		require.Equal(t, "ab", strings.Join(texts, ""))
		require.Equal(t, "a", upstream)
		require.Equal(t, []int{2, 1}, hitsOf(a, b))
		require.Equal(t, []call.Class{call.Unavailable}, seen.take())
		require.Equal(t, 2, breakerOf(t, k, "a").Counts().Failures)

		// A stream that the client sends on is settled by its first message.
		stream, err = open(t.Context(), f, bidiStream)
		require.NoError(t, err)
		require.NoError(t, stream.SendMsg(&healthpb.HealthCheckRequest{}))
		time.Sleep(time.Millisecond) // the server has it
		a.Wire.Reset()
		_, err = readAll(stream)
		require.Error(t, err)
		require.Equal(t, []int{3, 1}, hitsOf(a, b))
	})
}

// A refusal before anything was opened moves on as well: breaker and bulkhead.
func TestF6_AStreamPassesARefusalOver(t *testing.T) {
	bubble(t, func(t *testing.T) {
		a, b := play(t, silent), play(t, messages(3, 0, nil))
		k := newKit(t, with(func(p *holdfast.Policy) {
			readOnly(p)
			oneAttempt(p)
			p.Bulkhead = &bulkhead.Config{Limit: 1}
		}))
		f := over(t, k, a, b)
		ctx, cancel := context.WithCancel(t.Context())
		holding, err := open(ctx, f, serverStream)
		require.NoError(t, err)
		time.Sleep(time.Millisecond) // the server has it
		for range 2 {
			stream, err := open(t.Context(), f, serverStream)
			require.NoError(t, err)
			texts, err := readAll(stream)
			require.NoError(t, err)
			require.Equal(t, "abc", strings.Join(texts, ""))
			breakerOf(t, k, "a").ForceOpen("test") // and now the breaker
		}
		require.Equal(t, []int{1, 2}, hitsOf(a, b))
		require.Equal(t, 2, breakerOf(t, k, "b").Counts().Results, "each is booked")
		require.Zero(t, maps.Collect(k.Bulkheads())["b"].InUse())
		cancel()
		_, err = readAll(holding)
		require.Equal(t, codes.Canceled, status.Code(err))
	})
}
