package breaker

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-go/holdfast/internal/mono"
)

func TestB13_NothingIsAllocated(t *testing.T) {
	if raceEnabled {
		t.Skip("the race detector allocates")
	}
	zero := func(name string, f func()) {
		t.Helper()
		f() // what is made once
		require.Zero(t, testing.AllocsPerRun(200, f), name)
	}
	for _, bc := range benchConfigs {
		for _, shadow := range []bool{false, true} {
			c := bc.c
			c.Shadow = shadow
			b := benchBreaker(t, c)
			for _, v := range []Verdict{Success, Failure, Neutral, Throttled} {
				zero(bc.name+" "+v.String(), func() {
					for range 3 {
						tk, err := b.Allow()
						if err != nil {
							t.Fatal(err)
						}
						tk.Answered()
						tk.Unwatched()
						tk.Done(Outcome{Verdict: Success})
					}
					tk, err := b.AllowAt(mono.Now())
					if err != nil {
						t.Fatal(err)
					}
					tk.Done(Outcome{Verdict: v})
				})
				b.Reset()
				for range 200 {
					tk, _ := b.Allow()
					tk.Done(Outcome{Verdict: Success})
				}
			}
			zero(bc.name+" read", func() {
				b.State()
				b.Counts()
				b.WouldAdmit()
			})
		}
	}
	open := openBreaker(t)
	zero("refusal", func() {
		_, err := open.Allow()
		if e, ok := err.(*OpenError); !ok || e.RetryAfter() == 0 || !e.Is(ErrOpen) || open.WouldAdmit() {
			t.Fatal(err)
		}
	})
	half := benchBreaker(t, Config{Consecutive: 1, Cooldown: time.Nanosecond, MaxCooldown: time.Hour, ProbeSuccesses: 10_000})
	tk, _ := half.Allow()
	tk.Done(Outcome{})
	zero("probe", func() {
		tk, err := half.Allow()
		if err != nil {
			t.Fatal(err)
		}
		if _, err := half.Allow(); err == nil {
			t.Fatal("two probes")
		}
		tk.Answered()
		tk.Done(Outcome{Verdict: Success})
	})
	first, second := benchBreaker(t, Config{}), benchBreaker(t, Config{Consecutive: 3})
	zero("both", func() {
		p, err := AllowBoth(first, second)
		if err != nil {
			t.Fatal(err)
		}
		p.Done(Outcome{Verdict: Success})
		if _, err := AllowBoth(first, open); err == nil {
			t.Fatal("open")
		}
		if _, err := AllowBoth(open, open); err == nil {
			t.Fatal("open")
		}
	})
	g, err := NewGroup(Config{}, 0)
	require.NoError(t, err)
	zero("group", func() { g.For("a key") })
}
