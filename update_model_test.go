package holdfast

import (
	"context"
	"errors"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/holdfast-go/holdfast/breaker"
	"github.com/holdfast-go/holdfast/bulkhead"
	"github.com/holdfast-go/holdfast/call"
	"github.com/holdfast-go/holdfast/retry"
	"github.com/holdfast-go/holdfast/timeout"
)

// shelf is what the model knows of one entry: the breakers that it keeps by name,
// each updated by itself, and the permits that are out of each bulkhead.
type shelf struct {
	config   *breaker.Config
	breakers map[string]*breaker.Breaker
}

// model says C2 anew, for one target and a few methods: which breaker a call has,
// which of them an update leaves, and what each then does by package breaker alone.
type model struct {
	config  Config
	shelves map[string]*shelf
}

func (m *model) owner(method string) (string, *breaker.Config) {
	for _, key := range []string{method, ""} {
		p := m.config.Default
		if key != "" {
			p = m.config.Methods[key]
		}
		if p.Breaker != nil {
			return key, p.Breaker
		}
	}
	panic("Default sets one")
}

// names are those of the breakers that a call asks, the part's first.
func (m *model) names(method string) (key string, names []string) {
	key, c := m.owner(method)
	whole := "db"
	if key != "" {
		whole = "db|" + key
	}
	switch {
	case c.IsOff():
		return key, nil
	case c.Scope == breaker.PerMethod:
		return key, []string{"db|" + method}
	case c.Scope == breaker.TwoLevel && key != method:
		return key, []string{"db|" + method, whole}
	}
	return key, []string{whole}
}

func (m *model) call(t require.TestingT, method string, verdict breaker.Verdict) (refused bool) {
	key, names := m.names(method)
	var of []*breaker.Breaker
	for _, name := range names {
		s := m.shelves[key]
		if s.breakers[name] == nil {
			b, err := breaker.New(name, *s.config)
			require.NoError(t, err)
			s.breakers[name] = b
		}
		of = append(of, s.breakers[name])
	}
	switch len(of) {
	case 0:
		return false
	case 1:
		of = append(of, nil)
	}
	p, err := breaker.AllowBoth(of[0], of[1])
	if err != nil {
		return true
	}
	p.Done(breaker.Outcome{Verdict: verdict})
	return false
}

func (m *model) update(t require.TestingT, c Config) {
	m.config = c
	policies := maps.Clone(c.Methods)
	if policies == nil {
		policies = map[string]Policy{}
	}
	policies[""] = c.Default
	for key, s := range m.shelves {
		if b := policies[key].Breaker; b == nil || b.IsOff() {
			delete(m.shelves, key)
		} else if s.config.Scope != b.Scope {
			for name := range s.breakers {
				whole := name == "db" && key == "" || name == "db|"+key
				part := !whole || key != ""
				if b.Scope == breaker.PerTarget && !whole || b.Scope == breaker.PerMethod && !part {
					delete(s.breakers, name)
				}
			}
		}
	}
	for key, p := range policies {
		if p.Breaker == nil || p.Breaker.IsOff() {
			continue
		}
		if m.shelves[key] == nil {
			m.shelves[key] = &shelf{breakers: map[string]*breaker.Breaker{}}
		}
		m.shelves[key].config = p.Breaker
		for _, b := range m.shelves[key].breakers {
			require.NoError(t, b.Update(*p.Breaker))
		}
	}
}

func drawBreaker(t *rapid.T, label string) *breaker.Config {
	if rapid.IntRange(0, 9).Draw(t, label+" off") == 0 {
		return breaker.Off()
	}
	c := &breaker.Config{
		Consecutive: rapid.IntRange(1, 4).Draw(t, label+" consecutive"),
		Cooldown:    time.Duration(rapid.IntRange(1, 3).Draw(t, label+" cooldown")) * time.Second,
		Jitter:      breaker.NoJitter, ProbeTimeout: 5 * time.Second,
		ProbeSuccesses: rapid.IntRange(1, 2).Draw(t, label+" successes"),
		Scope:          rapid.SampledFrom([]breaker.Scope{breaker.PerTarget, breaker.PerMethod, breaker.TwoLevel}).Draw(t, label+" scope"),
	}
	switch rapid.IntRange(0, 2).Draw(t, label+" window") {
	case 0:
		c.Window.Calls, c.FailureRate, c.MinCalls = 8, 0.5, 4
	case 1:
		c.Window.Span, c.Failures = 10*time.Second, 3
	}
	return c
}

// C2, D092: whatever calls and updates follow each other, every breaker of the kit
// is where the model has it: no result is lost or counted twice, no state appears
// or vanishes.
func TestC2_TheModelOfUpdates(t *testing.T) {
	down := errors.New("down")
	methods := []string{"a", "b", "c"}
	rapid.Check(t, func(t *rapid.T) {
		rapid.SyncTest(t, func(t *rapid.T) {
			draw := func() Config {
				c := Config{Default: Policy{
					Retry: retry.Off(), Timeout: timeout.Off(), Breaker: drawBreaker(t, "default"),
					Bulkhead: &bulkhead.Config{Limit: 5},
				}}
				for _, name := range methods[:2] {
					if rapid.Bool().Draw(t, "entry "+name) {
						if c.Methods == nil {
							c.Methods = map[string]Policy{}
						}
						c.Methods[name] = Policy{Breaker: drawBreaker(t, name)}
					}
				}
				return c
			}
			c := draw()
			k, err := New(c)
			require.NoError(t, err)
			m := &model{shelves: map[string]*shelf{}}
			m.update(t, c.clone())
			t.Repeat(map[string]func(*rapid.T){
				"call": func(t *rapid.T) {
					method := rapid.SampledFrom(methods).Draw(t, "method")
					verdict, end := breaker.Success, error(nil)
					if rapid.IntRange(0, 3).Draw(t, "down") > 0 {
						verdict, end = breaker.Failure, down
					}
					_, err := Do(context.Background(), k, call.Info{Target: "db", Method: method},
						func(context.Context) (int, error) { return 0, end })
					require.Equal(t, m.call(t, method, verdict), errors.Is(err, breaker.ErrOpen), "%v", err)
				},
				"sleep":  func(t *rapid.T) { time.Sleep(time.Duration(rapid.IntRange(1, 1500).Draw(t, "ms")) * time.Millisecond) },
				"update": func(t *rapid.T) { c := draw(); require.NoError(t, k.Update(c)); m.update(t, c.clone()) },
				"refused": func(t *rapid.T) {
					c := draw()
					c.Methods = map[string]Policy{"c": {Bulkhead: &bulkhead.Config{}}}
					require.Error(t, k.Update(c))
				},
				"": func(t *rapid.T) {
					want := map[string]*breaker.Breaker{}
					for key, s := range m.shelves {
						for name, b := range s.breakers {
							want[key+" "+name] = b
						}
					}
					got := map[string]*breaker.Breaker{}
					for key, l := range k.now.Load().levels {
						if l.breakers == nil {
							continue
						}
						for name, b := range l.breakers.All() {
							got[key+" "+name] = b
						}
					}
					require.Equal(t, slices.Sorted(maps.Keys(want)), slices.Sorted(maps.Keys(got)))
					for name := range want {
						require.Equal(t, want[name].State(), got[name].State(), name)
						require.Equal(t, want[name].Generation(), got[name].Generation(), name)
						require.Equal(t, want[name].Counts(), got[name].Counts(), name)
					}
				},
			})
		})
	})
}
