package breaker_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-go/holdfast/breaker"
	"github.com/holdfast-go/holdfast/breaker/breakertest"
)

func BenchmarkFleetClosed(b *testing.B) {
	for _, c := range []struct {
		name string
		c    breaker.Config
	}{{"consecutive", breaker.Config{Consecutive: 5}}, {"span", breaker.Config{}}} {
		f, err := breaker.Join(breaker.Sharing{Store: breakertest.NewMemory()})
		require.NoError(b, err)
		local, err := breaker.New("db", c.c)
		require.NoError(b, err)
		shared, err := f.Breaker("db", c.c)
		require.NoError(b, err)
		for name, br := range map[string]*breaker.Breaker{"local": local, "shared": shared} {
			b.Run(c.name+"/"+name, func(b *testing.B) {
				b.ReportAllocs()
				for b.Loop() {
					t, err := br.Allow()
					if err != nil {
						b.Fatal(err)
					}
					t.Done(breaker.Outcome{Verdict: breaker.Success})
				}
			})
		}
	}
}

func TestSharingAllocatesNothing(t *testing.T) {
	f, err := breaker.Join(breaker.Sharing{Store: breakertest.NewMemory(), Refresh: time.Hour})
	require.NoError(t, err)
	b, err := f.Breaker("db", breaker.Config{})
	require.NoError(t, err)
	require.Zero(t, testing.AllocsPerRun(1000, func() {
		tk, err := b.Allow()
		if err != nil {
			t.Fatal(err)
		}
		tk.Done(breaker.Outcome{Verdict: breaker.Success})
	}))
}

// TestTheClosedPathCostsLittleMore compares the best of many short passes, taken
// in turn. What a fleet adds is one load of a word that is seldom written; the
// rest is room for a busy machine.
func TestTheClosedPathCostsLittleMore(t *testing.T) {
	f, err := breaker.Join(breaker.Sharing{Store: breakertest.NewMemory()})
	require.NoError(t, err)
	for name, c := range map[string]breaker.Config{"consecutive": {Consecutive: 5}, "span": {}} {
		local, err := breaker.New("db", c)
		require.NoError(t, err)
		shared, err := f.Breaker(name, c)
		require.NoError(t, err)
		const calls, passes = 2_000, 100
		best := [2]time.Duration{time.Hour, time.Hour}
		for range passes {
			for which, b := range []*breaker.Breaker{local, shared} {
				start := time.Now()
				for range calls {
					tk, err := b.Allow()
					if err != nil {
						t.Fatal(err)
					}
					tk.Done(breaker.Outcome{Verdict: breaker.Success})
				}
				best[which] = min(best[which], time.Since(start))
			}
		}
		ns := func(d time.Duration) float64 { return float64(d) / calls }
		t.Logf("%s: local %.1f ns, shared %.1f ns", name, ns(best[0]), ns(best[1]))
		require.Less(t, ns(best[1]), 1.5*ns(best[0])+3)
	}
}
