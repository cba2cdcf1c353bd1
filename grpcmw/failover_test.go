package grpcmw_test

import (
	"context"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/breaker"
	"github.com/holdfast-go/holdfast/bulkhead"
	"github.com/holdfast-go/holdfast/grpcmw"
	"github.com/holdfast-go/holdfast/outlier"
	"github.com/holdfast-go/holdfast/timeout"
)

// brittle is a policy of reads without retries whose breakers open at one failure.
func brittle(p *holdfast.Policy) {
	readOnly(p)
	oneAttempt(p)
	p.Breaker = &breaker.Config{Consecutive: 1, Cooldown: 10 * time.Second, Jitter: breaker.NoJitter, ProbeSuccesses: 1, ProbeTimeout: 200 * time.Millisecond}
}

// over puts a failover over servers, named a, b, c.
func over(t *testing.T, k *holdfast.Kit, servers ...*script) *grpcmw.FailoverConn {
	t.Helper()
	var ups []grpcmw.Upstream
	for i, s := range servers {
		ups = append(ups, grpcmw.Upstream{Conn: s.Dial(), Name: string(rune('a' + i))})
	}
	f, err := grpcmw.Failover(k, ups)
	require.NoError(t, err)
	return f
}

func hitsOf(servers ...*script) (hits []int) {
	for _, s := range servers {
		hits = append(hits, s.hitCount())
	}
	return hits
}

func ask(ctx context.Context, f *grpcmw.FailoverConn, opts ...grpc.CallOption) (text, upstream string, err error) {
	text, err = invoke(ctx, f, append(opts, grpcmw.ReportUpstream(&upstream))...)
	return text, upstream, err
}

func breakerOf(t *testing.T, k *holdfast.Kit, name string) *breaker.Breaker {
	t.Helper()
	b := maps.Collect(k.Breakers())[name]
	require.NotNil(t, b, "no breaker %q", name)
	return b
}

// D065, T4, B14: a channel that takes the stream and stays silent costs one limit on
// the first message, and is skipped for all its models from then on.
func TestD065_ASilentChannelIsSkippedForAllItsModels(t *testing.T) {
	bubble(t, func(t *testing.T) {
		a, b := play(t, silent), play(t, messages(3, time.Millisecond, nil))
		k := newKit(t, with(func(p *holdfast.Policy) {
			brittle(p)
			p.Breaker.Scope = breaker.TwoLevel
			p.Timeout = &timeout.Limits{FirstMessage: 100 * time.Millisecond}
		}))
		toA := a.Dial()
		f, err := grpcmw.Failover(k, []grpcmw.Upstream{
			{Conn: toA, Name: "A", Resource: "m1"}, {Conn: toA, Name: "A", Resource: "m2"}, {Conn: b.Dial(), Name: "B", Resource: "m1"},
		})
		require.NoError(t, err)
		for i, want := range []time.Duration{101 * time.Millisecond, time.Millisecond} {
			begin, upstream := time.Now(), ""
			stream, err := open(t.Context(), f, serverStream, grpcmw.ReportUpstream(&upstream))
			require.NoError(t, err)
			first := begin
			texts, err := readAllNoting(stream, &first)
			require.NoError(t, err)
			require.Equal(t, want, first.Sub(begin), i)
			require.Equal(t, "abc", strings.Join(texts, ""))
			require.Equal(t, "B|m1", upstream)
			require.Equal(t, []int{1, i + 1}, hitsOf(a, b), "A is hit once, and not at all by the next call")
		}
		require.Equal(t, 1, a.canceled)
	})
}

// D066, T4: the limit on the first message begins with the attempt, dial included, and
// holds for every hop and every attempt; what has lost is cancelled.
func TestD066_TheFirstMessagesLimitHoldsForEachHop(t *testing.T) {
	bubble(t, func(t *testing.T) {
		a, b := play(t, silent), play(t, silent)
		a.Wire.Hang(true)
		time.AfterFunc(80*time.Millisecond, func() { a.Wire.Hang(false) })
		f := over(t, newKit(t, with(func(p *holdfast.Policy) {
			readOnly(p)
			p.Retry.MaxAttempts = 2
			p.Breaker = breaker.Off()
			p.Timeout = &timeout.Limits{FirstMessage: 100 * time.Millisecond}
		})), a, b)
		begin := time.Now()
		stream, err := open(t.Context(), f, serverStream)
		require.NoError(t, err)
		_, err = readAll(stream)
		require.ErrorIs(t, err, timeout.ErrExceeded)
		require.Equal(t, 410*time.Millisecond, time.Since(begin), "two rounds of two limits, and the back-off")
		time.Sleep(time.Millisecond)
		require.Equal(t, []int{2, 2}, hitsOf(a, b))
		require.Equal(t, []int{2, 2}, []int{a.canceled, b.canceled})
	})
}

// D067: with all channels open one forced try goes to the one with the least cooldown
// left; one that is forced open is never asked.
func TestD067_OneForcedTryWhenAllAreOpen(t *testing.T) {
	bubble(t, func(t *testing.T) {
		a, b, c := play(t, fail(codes.Unavailable), say("A is back")), play(t, fail(codes.Unavailable)), play(t, say("C"))
		k := newKit(t, with(brittle))
		f := over(t, k, a, b, c)
		text, _, err := ask(t.Context(), f)
		require.NoError(t, err)
		require.Equal(t, "C", text)
		breakerOf(t, k, "c").ForceOpen("maintenance")
		text, upstream, err := ask(t.Context(), f)
		require.NoError(t, err)
		require.Equal(t, "A is back", text)
		require.Equal(t, "a", upstream)
		require.Equal(t, breaker.Closed, breakerOf(t, k, "a").State())

		time.Sleep(time.Second)
		breakerOf(t, k, "a").ForceOpen("maintenance")
		_, upstream, err = ask(t.Context(), f)
		require.Equal(t, codes.Unavailable, status.Code(err))
		require.NotErrorIs(t, err, breaker.ErrOpen, "the caller gets the failure")
		require.Equal(t, "b", upstream)
		_, _, err = ask(t.Context(), f)
		require.ErrorIs(t, err, breaker.ErrOpen, "one a second")
		require.Equal(t, []int{2, 2, 1}, hitsOf(a, b, c))
	})
}

// A forced try finds a server whose connection waits for its next dial (G5).
func TestF6_AForcedTryDialsAtOnce(t *testing.T) {
	bubble(t, func(t *testing.T) {
		a, b := play(t, say("A")), play(t, say("B"))
		a.Wire.Refuse(true)
		b.Wire.Refuse(true)
		f := over(t, newKit(t, with(brittle)), a, b)
		for range 20 {
			_, _, err := ask(t.Context(), f)
			require.Error(t, err)
			time.Sleep(time.Second)
		}
		a.Wire.Refuse(false)
		b.Wire.Refuse(false)
		time.Sleep(time.Second)
		_, _, err := ask(t.Context(), f)
		require.NoError(t, err)
	})
}

// F6, R2: an RPC that nothing says may be repeated moves on only if nothing was sent;
// what is refused by the dial was not.
func TestF6_AnUndeclaredCallMovesOnOnlyIfUnsent(t *testing.T) {
	bubble(t, func(t *testing.T) {
		a, b := play(t, fail(codes.Unavailable)), play(t, say("B"))
		f := over(t, newKit(t, policy()), a, b)
		_, _, err := ask(t.Context(), f)
		require.Equal(t, codes.Unavailable, status.Code(err))
		require.Equal(t, []int{1, 0}, hitsOf(a, b))

		keyed := metadata.AppendToOutgoingContext(t.Context(), "idempotency-key", "7")
		text, _, err := ask(keyed, f)
		require.NoError(t, err)
		require.Equal(t, "B", text)
		require.Equal(t, []string{"7"}, b.incoming[0].Get("idempotency-key"))

		dead := play(t, say("never"))
		dead.Wire.Refuse(true)
		f = over(t, newKit(t, policy()), dead, b)
		text, upstream, err := ask(t.Context(), f)
		require.NoError(t, err)
		require.Equal(t, "B", text)
		require.Equal(t, "b", upstream)
		require.Equal(t, []int{0, 2}, hitsOf(dead, b))
	})
}

// R9: one key for all hops and rounds. The attempt's number counts them all.
func TestR9_EachHopSendsTheSameKey(t *testing.T) {
	bubble(t, func(t *testing.T) {
		a, b := play(t, fail(codes.Unavailable)), play(t, fail(codes.Unavailable), say("B"))
		f := over(t, newKit(t, with(func(p *holdfast.Policy) { p.Retry.IdempotencyKey = true })), a, b)
		text, _, err := ask(t.Context(), f)
		require.NoError(t, err)
		require.Equal(t, "B", text)
		keys := map[string]bool{}
		var numbers []string
		for _, md := range slices.Concat(a.incoming, b.incoming) {
			require.Len(t, md.Get("idempotency-key"), 1)
			keys[md.Get("idempotency-key")[0]] = true
			numbers = append(numbers, strings.Join(md.Get("grpc-previous-rpc-attempts"), ","))
		}
		require.Len(t, keys, 1)
		require.Equal(t, []string{"", "2", "1", "3"}, numbers)
	})
}

// Connections that have the kit's interceptors count once all the same.
func TestF6_TheKitsOwnConnectionsAreNotCountedTwice(t *testing.T) {
	bubble(t, func(t *testing.T) {
		a, b := play(t, fail(codes.Unavailable)), play(t, messages(1, 0, nil))
		k := newKit(t, with(func(p *holdfast.Policy) {
			readOnly(p)
			p.Retry.EvenNested = true
			p.Bulkhead = &bulkhead.Config{Limit: 1}
		}))
		f, err := grpcmw.Failover(k, []grpcmw.Upstream{{Conn: a.connect(t, k), Name: "a"}, {Conn: b.connect(t, k), Name: "b"}})
		require.NoError(t, err)
		_, _, err = ask(t.Context(), f)
		require.NoError(t, err)
		stream, err := open(t.Context(), f, serverStream)
		require.NoError(t, err)
		_, err = readAll(stream)
		require.NoError(t, err)
		require.Equal(t, []int{2, 2}, hitsOf(a, b))
		require.Equal(t, []string{"a", "b"}, slices.Sorted(maps.Keys(maps.Collect(k.Breakers()))), "no breaker of the connections' own")
	})
}

// F7, D102: the bad one of four connections is left out after its own minimum, and the
// service's breaker judges the others.
func TestD102_ABadInstanceIsLeftOut(t *testing.T) {
	bubble(t, func(t *testing.T) {
		bad, opened := play(t, fail(codes.Unavailable)), 0
		servers := []*script{play(t, say("ok")), play(t, say("ok")), bad, play(t, say("ok"))}
		k := newKit(t, with(func(p *holdfast.Policy) {
			readOnly(p)
			oneAttempt(p)
			p.Breaker = &breaker.Config{Window: breaker.Window{Calls: 20}, MinCalls: 10, FailureRate: 0.5, Jitter: breaker.NoJitter}
			p.Breaker.Hooks.Transition = func(breaker.Transition) { opened++ }
		}))
		up := grpcmw.Upstream{Name: "service", Outlier: outlier.Config{MinCalls: 5}}
		for _, s := range servers {
			up.Instances = append(up.Instances, s.Dial())
		}
		f, err := grpcmw.Failover(k, []grpcmw.Upstream{up})
		require.NoError(t, err)
		failed := 0
		for failed < 5 {
			if _, _, err := ask(t.Context(), f); err != nil {
				failed++
			}
		}
		require.Equal(t, 5, bad.hitCount())
		failed = 0
		for range 400 { // 20 s
			if _, _, err := ask(t.Context(), f); err != nil {
				failed++
			}
			time.Sleep(50 * time.Millisecond)
		}
		require.Less(t, failed, 8, "of 400: under 2 %%")
		require.GreaterOrEqual(t, failed, 1, "it has had a trial")
		require.Zero(t, opened, "the service's breaker was closed throughout")

		for _, s := range servers {
			s.mu.Lock()
			s.steps = []hit{fail(codes.Unavailable)}
			s.mu.Unlock()
		}
		for range 100 {
			_, _, err = ask(t.Context(), f)
		}
		require.ErrorIs(t, err, breaker.ErrOpen, "all are bad: the service is")
	})
}
