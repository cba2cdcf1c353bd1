package grpcmw_test

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/breaker"
	"github.com/holdfast-go/holdfast/grpcmw"
	"github.com/holdfast-go/holdfast/outlier"
)

// way is how a call is made: as a unary RPC or as a stream that is read to its end. It
// returns the upstream that the call ended with.
type way func(ctx context.Context, f *grpcmw.FailoverConn) (string, error)

var ways = map[string]way{
	"unary": func(ctx context.Context, f *grpcmw.FailoverConn) (string, error) {
		_, upstream, err := ask(ctx, f)
		return upstream, err
	},
	"stream": func(ctx context.Context, f *grpcmw.FailoverConn) (upstream string, _ error) {
		s, err := open(ctx, f, serverStream, grpcmw.ReportUpstream(&upstream))
		if err == nil {
			_, err = readAll(s)
		}
		return upstream, err
	},
}

// each runs a test in a bubble for each way.
func each(t *testing.T, f func(t *testing.T, call way)) {
	for name, call := range ways {
		t.Run(name, func(t *testing.T) { bubble(t, func(t *testing.T) { f(t, call) }) })
	}
}

// F6: calls go back to the preferred upstream when its probes have closed its breaker, and
// not before: neither when it is well again nor beside a probe, and one that fails costs
// its caller nothing.
func TestF6_TheReturnIsSticky(t *testing.T) {
	each(t, func(t *testing.T, call way) {
		down, late := fail(codes.Unavailable), after(50*time.Millisecond, say("a"))
		a, b := play(t, down, down, late, say("a")), play(t, say("b"))
		k := newKit(t, with(func(p *holdfast.Policy) { brittle(p); p.Breaker.ProbeSuccesses = 3 }))
		f := over(t, k, a, b)
		calls := func(n int, want string) {
			t.Helper()
			for range n {
				upstream, err := call(t.Context(), f)
				require.NoError(t, err)
				require.Equal(t, want, upstream)
			}
		}
		calls(20, "b")
		require.Equal(t, []int{1, 20}, hitsOf(a, b))
		time.Sleep(9 * time.Second) // of 10
		calls(20, "b")
		require.Equal(t, []int{1, 40}, hitsOf(a, b), "whatever a would say now")

		time.Sleep(time.Second)
		calls(1, "b")
		require.Equal(t, []int{2, 41}, hitsOf(a, b), "the probe failed, the call did not")
		require.Equal(t, breaker.Open, breakerOf(t, k, "a").State())

		time.Sleep(20 * time.Second) // twice as long
		var probe sync.WaitGroup
		probe.Go(func() { calls(1, "a") })
		time.Sleep(10 * time.Millisecond)
		calls(20, "b") // beside it
		probe.Wait()
		require.Equal(t, breaker.HalfOpen, breakerOf(t, k, "a").State())
		calls(2, "a")
		require.Equal(t, breaker.Closed, breakerOf(t, k, "a").State())
		calls(20, "a")
		require.Equal(t, []int{25, 61}, hitsOf(a, b))
	})
}

// D067, F6: fifty calls at once while all are closed off make one forced try, at the one
// with the least cooldown left; the others are refused at once.
func TestD067_FiftyCallsMakeOneForcedTry(t *testing.T) {
	each(t, func(t *testing.T, call way) {
		down := fail(codes.Unavailable)
		a, b, c := play(t, down, after(100*time.Millisecond, down)), play(t, down), play(t, say("c"))
		k := newKit(t, with(func(p *holdfast.Policy) { brittle(p); p.Breaker.Cooldown = 30 * time.Second }))
		f := over(t, k, a, b, c)
		b.Wire.Hang(true) // its Attempt limit closes it off a little later than a
		_, err := call(t.Context(), f)
		require.NoError(t, err)
		b.Wire.Hang(false)
		breakerOf(t, k, "c").ForceOpen("maintenance")
		time.Sleep(15 * time.Second)
		begin := time.Now()
		var refused, failed int
		var mu sync.Mutex
		var all sync.WaitGroup
		for range 50 {
			all.Go(func() {
				_, err := call(t.Context(), f)
				mu.Lock()
				defer mu.Unlock()
				switch {
				case status.Code(err) != codes.Unavailable:
					t.Errorf("a call ended with %v", err)
				case holdfast.Refused(err):
					refused++
					if time.Since(begin) > 0 {
						t.Errorf("a refusal took %v", time.Since(begin))
					}
				default:
					failed++
				}
			})
		}
		all.Wait()
		require.Equal(t, []int{49, 1}, []int{refused, failed})
		require.Equal(t, []int{2, 0, 1}, hitsOf(a, b, c))
		require.Equal(t, breaker.Open, breakerOf(t, k, "a").State(), "opened again")
	})
}

// F6: with all upstreams forced open nobody is asked, however long it lasts.
func TestF6_AllForcedOpenIsARefusal(t *testing.T) {
	each(t, func(t *testing.T, call way) {
		a, b := play(t, fail(codes.Unavailable), say("a")), play(t, say("b"))
		k := newKit(t, with(brittle))
		f := over(t, k, a, b)
		_, err := call(t.Context(), f)
		require.NoError(t, err)
		for _, name := range []string{"a", "b"} {
			breakerOf(t, k, name).ForceOpen("maintenance")
		}
		for range 10 {
			time.Sleep(time.Minute)
			_, err = call(t.Context(), f)
			require.ErrorIs(t, err, breaker.ErrOpen)
			require.Equal(t, codes.Unavailable, status.Code(err))
		}
		require.Equal(t, []int{1, 1}, hitsOf(a, b))
		breakerOf(t, k, "b").Release()
		time.Sleep(time.Minute)
		upstream, err := call(t.Context(), f)
		require.NoError(t, err)
		require.Equal(t, "b", upstream)
	})
}

// instances puts a failover over servers that are instances of one upstream.
func instances(t *testing.T, k *holdfast.Kit, o outlier.Config, servers ...*script) *grpcmw.FailoverConn {
	t.Helper()
	up := grpcmw.Upstream{Name: "service", Outlier: o}
	for _, s := range servers {
		up.Instances = append(up.Instances, s.Dial())
	}
	f, err := grpcmw.Failover(k, []grpcmw.Upstream{up})
	require.NoError(t, err)
	return f
}

// F7, D102: the results of streams are kept for each instance too, by how they end: one that
// breaks off its streams after their first message is left out after its own minimum.
func TestF7_AnInstanceThatBreaksOffItsStreamsIsLeftOut(t *testing.T) {
	bubble(t, func(t *testing.T) {
		ok := messages(3, 0, nil)
		bad := play(t, messages(1, 0, errDown))
		var ejected []string
		k := newKit(t, with(func(p *holdfast.Policy) {
			readOnly(p)
			p.Breaker = &breaker.Config{Window: breaker.Window{Calls: 20}, MinCalls: 10, FailureRate: 0.5, Jitter: breaker.NoJitter}
		}))
		f := instances(t, k, outlier.Config{MinCalls: 5, Ejected: func(name string, _ time.Duration) { ejected = append(ejected, name) }},
			play(t, ok), play(t, ok), bad, play(t, ok))
		for range 20 { // in turn
			s, err := open(t.Context(), f, serverStream)
			require.NoError(t, err)
			_, _ = readAll(s)
		}
		require.Equal(t, 5, bad.hitCount())
		require.Equal(t, []string{"service#2"}, ejected)
		for range 40 {
			s, err := open(t.Context(), f, serverStream)
			require.NoError(t, err)
			texts, err := readAll(s)
			require.NoError(t, err)
			require.Len(t, texts, 3)
		}
		require.Equal(t, 5, bad.hitCount())
		require.Equal(t, breaker.Closed, breakerOf(t, k, "service").State())
	})
}

// F7: a repeat goes to another instance than the attempt before it.
func TestF7_ARetryGoesToAnotherInstance(t *testing.T) {
	each(t, func(t *testing.T, call way) {
		bad, good := play(t, fail(codes.Unavailable)), play(t, say("good"))
		f := instances(t, newKit(t, with(func(p *holdfast.Policy) { readOnly(p); p.Breaker.MinCalls = 10 })), outlier.Config{}, bad, good)
		for range 4 {
			_, err := call(t.Context(), f)
			require.NoError(t, err)
		}
		require.Equal(t, []int{2, 4}, hitsOf(bad, good))
	})
}

// F7: never are all left out: with every instance bad the calls still reach them.
func TestF7_NeverAllInstancesAreLeftOut(t *testing.T) {
	each(t, func(t *testing.T, call way) {
		var servers []*script
		for range 4 {
			servers = append(servers, play(t, fail(codes.Unavailable)))
		}
		ejected := 0
		f := instances(t, newKit(t, with(func(p *holdfast.Policy) { readOnly(p); oneAttempt(p); p.Breaker = breaker.Off() })),
			outlier.Config{MinCalls: 5, Ejected: func(string, time.Duration) { ejected++ }}, servers...)
		const calls = 100
		for range calls {
			_, err := call(t.Context(), f)
			require.ErrorContains(t, err, "as scripted")
		}
		synctest.Wait()
		sum := 0
		for _, hits := range hitsOf(servers...) {
			sum += hits
		}
		require.Equal(t, calls, sum, "each was sent")
		require.Equal(t, 4, ejected, "though all are bad")
	})
}
