package instance_test

import (
	"fmt"
	"math"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/holdfast-go/holdfast/breaker"
	"github.com/holdfast-go/holdfast/internal/instance"
	"github.com/holdfast-go/holdfast/internal/mono"
	"github.com/holdfast-go/holdfast/outlier"
)

var (
	good = breaker.Outcome{Verdict: breaker.Success}
	bad  = breaker.Outcome{Verdict: breaker.Failure}
)

func set(t require.TestingT, c outlier.Config, n int) *instance.Set {
	names := make([]string, n)
	for i := range names {
		names[i] = fmt.Sprint("i", i)
	}
	s, err := instance.New(c, names...)
	require.NoError(t, err)
	return s
}

// call makes one call, whose end is bad on the instances named, and returns where it
// went.
func call(s *instance.Set, broken ...int) int {
	var p instance.Pick
	p.Take(s, -1, 0, mono.Now())
	end := good
	for _, i := range broken {
		if p.Index() == i {
			end = bad
		}
	}
	p.Done(end, mono.Now())
	return p.Index()
}

func calls(s *instance.Set, n int, broken ...int) map[int]int {
	went := map[int]int{}
	for range n {
		went[call(s, broken...)]++
	}
	return went
}

func ejected(s *instance.Set) (names []string) {
	for _, i := range s.Instances() {
		if i.Ejected {
			names = append(names, i.Name)
		}
	}
	return names
}

// F7, D102: the bad one of four is ejected after its fifth result, and the others
// share its calls.
func TestD102_ABadInstanceIsEjectedAfterItsOwnMinimum(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := set(t, outlier.Config{MinCalls: 5}, 4)
		require.Equal(t, map[int]int{0: 5, 1: 5, 2: 5, 3: 4}, calls(s, 19, 3))
		require.Empty(t, ejected(s))
		require.Equal(t, 3, call(s, 3))
		require.Equal(t, []string{"i3"}, ejected(s))
		require.Equal(t, map[int]int{0: 100, 1: 100, 2: 100}, calls(s, 300, 3))
	})
}

// F7: an ejection grows with each in a row up to the bound, ends with one trial, and
// begins anew after a recovery.
func TestF7_EjectionsGrowAndEndWithOneTrial(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var lasted []time.Duration
		var back []string
		s := set(t, outlier.Config{
			Time: time.Second, MaxTime: 5 * time.Second,
			Ejected:  func(_ string, d time.Duration) { lasted = append(lasted, d) },
			Returned: func(name string) { back = append(back, name) },
		}, 2)
		calls(s, 10, 1)
		for range 4 {
			time.Sleep(lasted[len(lasted)-1])
			require.Equal(t, 1, calls(s, 50, 1)[1], "one trial")
		}
		require.Len(t, lasted, 5)
		for i, want := range []float64{1, 2, 4, 5, 5} {
			require.InDelta(t, want, lasted[i].Seconds(), want*0.21, i)
		}
		require.Empty(t, back)
		time.Sleep(lasted[4])
		require.Equal(t, 25, calls(s, 50)[1], "it is back")
		require.Equal(t, []string{"i1"}, back)
		calls(s, 50, 1)
		require.InDelta(t, 1, lasted[5].Seconds(), 0.21)
	})
}

// F7: a trial has the time that the policy of its call allows an attempt, or the
// Config's own: an instance that takes its time to answer is no bad one.
func TestF7_ATrialThatTakesItsTime(t *testing.T) {
	for name, tc := range map[string]struct {
		trial, limit, takes time.Duration
		back                bool
	}{
		"the limit of the call":            {0, 30 * time.Second, 15 * time.Second, true},
		"the call has none":                {0, 0, 9 * time.Second, true},
		"the call has none, 10 s are over": {0, 0, 11 * time.Second, false},
		"a limit of the Config's":          {20 * time.Second, 12 * time.Second, 15 * time.Second, true},
		"one that is over":                 {time.Second, 30 * time.Second, 2 * time.Second, false},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := set(t, outlier.Config{Time: time.Second, TrialTimeout: tc.trial}, 2)
				calls(s, 10, 1)
				time.Sleep(2 * time.Second)
				var trial instance.Pick
				trial.Take(s, 0, tc.limit, mono.Now())
				require.True(t, trial.Trial())
				time.Sleep(tc.takes)
				trial.Done(good, mono.Now())
				if tc.back {
					require.Empty(t, ejected(s))
				} else {
					require.Equal(t, []string{"i1"}, ejected(s))
				}
			})
		})
	}
}

// A Config that its Check finds nothing wrong with makes a set.
func TestWhatCheckPassesCanBeMade(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		times := rapid.SampledFrom([]time.Duration{0, 1, time.Second, 1e18, math.MaxInt64 - 1, math.MaxInt64})
		c := outlier.Config{
			Window: rapid.IntRange(0, 40_000).Draw(t, "Window"), MinCalls: rapid.IntRange(0, 40_000).Draw(t, "MinCalls"),
			FailureRate: rapid.SampledFrom([]float64{0, 1e-300, 1e-10, 1e-9, 0.5, 1}).Draw(t, "FailureRate"),
			Time:        times.Draw(t, "Time"), MaxTime: times.Draw(t, "MaxTime"), TrialTimeout: times.Draw(t, "TrialTimeout"),
		}
		_, err := instance.New(c, "a", "b")
		if c.Check() == nil {
			require.NoError(t, err)
		} else {
			require.Error(t, err)
		}
	})
}

// F7: a trial in flight is alone.
func TestF7_OneTrialAtATime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := set(t, outlier.Config{Time: time.Second}, 2)
		calls(s, 10, 1)
		time.Sleep(2 * time.Second)
		var trial instance.Pick
		trial.Take(s, 0, 0, mono.Now()) // not the other one
		require.Equal(t, 1, trial.Index())
		require.True(t, trial.Trial())
		require.Equal(t, map[int]int{0: 50}, calls(s, 50, 1))
		trial.Done(good, mono.Now())
		trial.Done(bad, mono.Now())
		require.Empty(t, ejected(s))
		require.Equal(t, 25, calls(s, 50)[1])
	})
}

// F7: never are all ejected; of too many the one whose time is over first is used.
func TestF7_NeverAll(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := set(t, outlier.Config{}, 3)
		calls(s, 5, 0, 1, 2) // each has one or two
		for range 20 {
			call(s, 0, 1, 2)
			time.Sleep(time.Millisecond)
		}
		require.Len(t, ejected(s), 3)
		went := calls(s, 30, 0, 1, 2)
		require.Len(t, went, 1, "the least of evils")

		s = set(t, outlier.Config{MaxEjected: 1}, 4)
		calls(s, 20, 0)
		calls(s, 20, 0, 1)
		went = calls(s, 60, 0, 1)
		require.Len(t, went, 3, "only one is left out")

		s = set(t, outlier.Config{}, 1)
		require.Equal(t, map[int]int{0: 30}, calls(s, 30, 0))
	})
}

// The instance with the least in flight has the call, and another one than the one to
// avoid.
func TestTheLeastInFlightIsPicked(t *testing.T) {
	s := set(t, outlier.Config{}, 3)
	var slow [2]instance.Pick
	slow[0].Take(s, -1, 0, mono.Now())
	slow[1].Take(s, -1, 0, mono.Now())
	require.NotEqual(t, slow[0].Index(), slow[1].Index())
	free := 3 - slow[0].Index() - slow[1].Index()
	require.Equal(t, map[int]int{free: 9}, calls(s, 9))
	for _, i := range s.Instances() {
		require.Equal(t, i.Name != fmt.Sprint("i", free), i.InFlight == 1)
	}
	var other instance.Pick
	other.Take(s, free, 0, mono.Now())
	require.NotEqual(t, free, other.Index())
	other.Done(good, mono.Now())
	slow[0].Done(good, mono.Now())
	slow[1].Done(good, mono.Now())
	require.Len(t, calls(s, 9), 3)

	one := set(t, outlier.Config{}, 1)
	var only instance.Pick
	only.Take(one, 0, 0, mono.Now())
	require.Zero(t, only.Index(), "there is no other")
	only.Done(good, mono.Now())
}

// Whatever the instances answer, some instance is used, no more than MaxEjected are
// left out, and nothing stays in flight.
func TestF7_WhateverTheInstancesAnswer(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		rapid.SyncTest(t, func(t *rapid.T) {
			n := rapid.IntRange(1, 6).Draw(t, "instances")
			c := outlier.Config{
				MaxEjected: rapid.IntRange(0, 6).Draw(t, "MaxEjected"),
				MinCalls:   rapid.IntRange(1, 5).Draw(t, "MinCalls"), Time: time.Second,
			}
			s := set(t, c, n)
			most := n - 1
			if c.MaxEjected > 0 {
				most = min(most, c.MaxEjected)
			}
			var mu sync.Mutex
			used := map[int]bool{}
			for range rapid.IntRange(1, 30).Draw(t, "rounds") {
				broken := map[int]bool{}
				for i := range n {
					broken[i] = rapid.Bool().Draw(t, "broken")
				}
				var all sync.WaitGroup
				for range rapid.IntRange(1, 8).Draw(t, "callers") {
					takes := time.Duration(rapid.IntRange(0, 3).Draw(t, "takes")) * time.Millisecond
					all.Go(func() {
						var p instance.Pick
						p.Take(s, -1, 0, mono.Now())
						mu.Lock()
						used[p.Index()] = true
						end := good
						if broken[p.Index()] {
							end = bad
						}
						mu.Unlock()
						time.Sleep(takes)
						p.Done(end, mono.Now())
					})
				}
				all.Wait()
				time.Sleep(time.Duration(rapid.IntRange(0, 3).Draw(t, "pause")) * 500 * time.Millisecond)
			}
			used = map[int]bool{}
			for range 4 * n {
				used[call(s)] = true
			}
			require.GreaterOrEqual(t, len(used), n-most)
			for _, i := range s.Instances() {
				require.Zero(t, i.InFlight)
			}
		})
	})
}

func TestBadSetsAreRefused(t *testing.T) {
	for text, make := range map[string]func() (*instance.Set, error){
		"names = 0":           func() (*instance.Set, error) { return instance.New(outlier.Config{}) },
		"names: one is empty": func() (*instance.Set, error) { return instance.New(outlier.Config{}, "") },
		"names = a":           func() (*instance.Set, error) { return instance.New(outlier.Config{}, "a", "b", "a") },
		"MinCalls = -1":       func() (*instance.Set, error) { return instance.New(outlier.Config{MinCalls: -1}, "a") },
		"MinCalls = 9":        func() (*instance.Set, error) { return instance.New(outlier.Config{MinCalls: 9, Window: 8}, "a") },
		"Window = -1":         func() (*instance.Set, error) { return instance.New(outlier.Config{Window: -1}, "a") },
		"FailureRate = 1.5":   func() (*instance.Set, error) { return instance.New(outlier.Config{FailureRate: 1.5}, "a") },
		"FailureRate = NaN":   func() (*instance.Set, error) { return instance.New(outlier.Config{FailureRate: math.NaN()}, "a") },
		"Time = -1ns":         func() (*instance.Set, error) { return instance.New(outlier.Config{Time: -1}, "a") },
		"MaxTime = 1s":        func() (*instance.Set, error) { return instance.New(outlier.Config{MaxTime: time.Second}, "a") },
		"FailureRate = 1e-12": func() (*instance.Set, error) { return instance.New(outlier.Config{FailureRate: 1e-12}, "a") },
		"MinCalls = 30001":    func() (*instance.Set, error) { return instance.New(outlier.Config{MinCalls: 30_001}, "a") },
		"TrialTimeout = -1ns": func() (*instance.Set, error) { return instance.New(outlier.Config{TrialTimeout: -1}, "a") },
		"MaxEjected = -1":     func() (*instance.Set, error) { return instance.New(outlier.Config{MaxEjected: -1}, "a") },
	} {
		_, err := make()
		require.ErrorContains(t, err, text)
	}
	_, err := instance.New(outlier.Config{Time: 10 * 365 * 24 * time.Hour}, "a")
	require.NoError(t, err, "MaxTime is what can be told")
	_, err = instance.New(outlier.Config{Window: 3, MinCalls: 0}, "a")
	require.NoError(t, err, "MinCalls is 3 then")
}

func BenchmarkTake(b *testing.B) {
	s := set(b, outlier.Config{}, 4)
	b.ReportAllocs()
	for b.Loop() {
		var p instance.Pick
		now := mono.Now()
		p.Take(s, -1, 0, now)
		p.Done(good, now)
	}
}
