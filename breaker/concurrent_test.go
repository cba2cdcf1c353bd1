package breaker

import (
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-go/holdfast/internal/mono"
)

func TestD006_NeverMoreThanTheProbesAtTheEdge(t *testing.T) {
	c := p0()
	c.Probes, c.ProbeSuccesses, c.ProbeTimeout = 3, 3, time.Hour
	rounds := 200
	if testing.Short() {
		rounds = 20
	}
	for range rounds {
		b := newBreaker("db", compile(c), mono.Instant{})
		for range 5 {
			tk, _ := b.AllowAt(mono.Instant{})
			tk.DoneAt(Outcome{Verdict: Failure}, mono.Instant{})
		}
		var hits, refused atomic.Int64
		var wg sync.WaitGroup
		gate := make(chan struct{})
		for range 200 {
			wg.Go(func() {
				<-gate
				if tk, err := b.AllowAt(mono.Instant{}.Add(time.Second)); err == nil {
					if tk.Probe() {
						hits.Add(1)
					}
				} else {
					refused.Add(1)
				}
			})
		}
		close(gate)
		wg.Wait()
		require.EqualValues(t, 3, hits.Load())
		require.EqualValues(t, 197, refused.Load())
	}
}

func TestB5_NoResultIsLostAtABucketEdge(t *testing.T) {
	// The clock passes a bucket's end every few results, and never the window's.
	const workers, each = 64, 400
	for name, window := range map[string]Window{
		"1000 buckets": {Span: time.Second, Buckets: 1000},
		"10 buckets":   {Span: time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBreaker("db", compile(Config{Window: window, FailureRate: 1}), mono.Instant{})
			tk, _ := b.AllowAt(mono.Instant{})
			tk.DoneAt(Outcome{Verdict: Success}, mono.Instant{}) // so that it cannot open
			var clock atomic.Int64
			const stepsTo = int64(time.Second) * 9 / 10 / (workers * each)
			var wg, turns sync.WaitGroup
			var stop atomic.Bool
			turns.Go(func() { // somebody else moves the window on
				for !stop.Load() {
					b.release(mono.Unpack(clock.Load()))
					runtime.Gosched()
				}
			})
			for w := range workers {
				wg.Go(func() {
					for i := range each {
						now := mono.Unpack(clock.Add(stepsTo))
						tk, err := b.AllowAt(now)
						if err != nil {
							t.Error(err)
							return
						}
						if i%13 == 0 {
							runtime.Gosched() // with a reading that is then old
						}
						tk.DoneAt(Outcome{Verdict: []Verdict{Success, Failure}[(w+i)%2]}, now)
					}
				})
			}
			wg.Wait()
			stop.Store(true)
			turns.Wait()
			now := mono.Unpack(clock.Load())
			c := b.countsAt(now)
			require.Equal(t, workers*each+1, c.Results)
			require.Equal(t, workers*each/2, c.Failures)
			require.Zero(t, b.countsAt(now.Add(time.Second)).Results)

			// Each result leaves once: step by bucket, the counts only fall to 0.
			last := c.Results
			for range 2000 {
				now = now.Add(ms)
				n := b.countsAt(now).Results
				require.LessOrEqual(t, n, last)
				last = n
			}
			require.Zero(t, last)
		})
	}
}

func TestB5_TheLastResultsAreExactUnderContention(t *testing.T) {
	const workers, each, n = 16, 500, 100
	b := newBreaker("db", compile(Config{Window: Window{Calls: n}, Failures: n, SlowCall: ms, SlowRate: 1}), mono.Instant{})
	run := func(v func(i int) Verdict, took time.Duration) {
		var wg sync.WaitGroup
		for w := range workers {
			wg.Go(func() {
				for i := range each {
					tk, err := b.AllowAt(mono.Instant{})
					if err != nil {
						t.Error(err)
						return
					}
					tk.DoneAt(Outcome{Verdict: v(w + i)}, mono.Instant{}.Add(took*time.Duration(i%2)))
				}
			})
		}
		wg.Wait()
		c, ep := b.countsAt(mono.Instant{}), b.now.Load()
		failed, slow := ep.last.planes(ep.rules)
		b.mu.Lock()
		ep.sum.Add(-ep.last.clear(ep.rules, callSeenOf(ep.sum.Load())))
		b.mu.Unlock()
		require.Equal(t, n, c.Results)
		require.EqualValues(t, count(failed, 0, n, false), c.Failures, "the sum is that of the bits")
		require.EqualValues(t, count(slow, 0, n, false), c.Slow)
	}
	run(func(i int) Verdict { return []Verdict{Success, Failure, Success}[i%3] }, 0)
	run(func(i int) Verdict { return Success }, 0)
	require.Zero(t, b.countsAt(mono.Instant{}).Failures)
	run(func(i int) Verdict { return []Verdict{Success, Success, Failure, Neutral}[i%4] }, 2*ms)
}

func TestD015_NoGoroutineNoTimer(t *testing.T) {
	const n = 20_000
	before := runtime.NumGoroutine()
	bytes, _ := heap()
	rules := compile(Config{Consecutive: 1, RampUp: time.Second, Stall: Stall{After: ms}})
	all := make([]*Breaker, n)
	for i := range all {
		all[i] = newBreaker("db", rules, mono.Now())
		tk, err := all[i].Allow()
		require.NoError(t, err)
		tk.Done(Outcome{Verdict: Failure})
		require.Equal(t, Open, all[i].State())
	}
	require.LessOrEqual(t, runtime.NumGoroutine(), before)
	runtime.KeepAlive(all)
	all = nil
	runtime.GC()
	after, _ := heap()
	require.InDelta(t, bytes, after, 0.1*float64(bytes)+1e6, "dropped, they are collected")
}

func TestBytesOfAnIdleBreaker(t *testing.T) {
	if raceEnabled {
		t.Skip("objects are larger with -race")
	}
	for _, tc := range []struct {
		name string
		c    Config
		most float64
	}{
		{"consecutive", Config{Consecutive: 5}, 96},
		{"calls", Config{Window: Window{Calls: 100}, FailureRate: 0.5}, 128},
		{"span", Config{}, 192},
		{"span and slow", Config{FailureRate: 0.5, SlowCall: ms}, 256},
		{"all", Config{FailureRate: 0.5, SlowCall: ms, Stall: Stall{After: ms}, Consecutive: 3}, 352},
	} {
		const n = 10_000
		rules, all := compile(tc.c), make([]*Breaker, n)
		before, objects := heap()
		for i := range all {
			all[i] = newBreaker("db", rules, mono.Instant{})
		}
		after, now := heap()
		runtime.KeepAlive(all)
		require.LessOrEqual(t, float64(after-before)/n, tc.most+2, tc.name)
		require.LessOrEqual(t, float64(now-objects)/n, 3.1, tc.name)
	}
}
