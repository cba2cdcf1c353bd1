package holdfast_test

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/breaker"
	"github.com/holdfast-go/holdfast/bulkhead"
	"github.com/holdfast-go/holdfast/call"
	"github.com/holdfast-go/holdfast/retry"
	"github.com/holdfast-go/holdfast/timeout"
)

// seen is what one call has seen of the configurations.
type seen struct{ n int64 } // -1 before the first

type seenKey struct{}

func see(ctx context.Context, t *testing.T, n int64) {
	s := ctx.Value(seenKey{}).(*seen)
	if s.n >= 0 && s.n != n {
		t.Errorf("a call saw configurations %d and %d", s.n, n)
	}
	s.n = n
}

// C2: while updates race with calls and with each other, each call has one
// configuration from its beginning to its end, the one of the last update at the
// earliest that had returned before it began, and no permit or ticket is lost. In
// real time, for the race detector.
func TestC2_NoCallSeesHalfOfAnUpdate(t *testing.T) {
	scopes := []breaker.Scope{breaker.PerTarget, breaker.PerMethod, breaker.TwoLevel}
	config := func(n int64) holdfast.Config {
		b := &breaker.Config{Failures: 30_000, Stall: breaker.Stall{After: time.Hour}, Scope: scopes[n%3]}
		policy := func() holdfast.Policy {
			return holdfast.Policy{
				Breaker: b, Bulkhead: &bulkhead.Config{Limit: 1000 + int(n), Scope: bulkhead.Scope(n / 3 % 3)},
				Retry: &retry.Policy{MaxAttempts: 2 + int(n%4), Backoff: retry.NoWait(), Budget: retry.Budget{Cap: 1e6, Initial: 1e6, Share: 1}},
				Classify: func(ctx context.Context, _ call.Info, res call.Result) call.Result {
					see(ctx, t, n)
					return res
				},
			}
		}
		c := holdfast.Config{Default: policy(), Methods: map[string]holdfast.Policy{}}
		c.Hooks.Retry = func(ctx context.Context, _ holdfast.Retry) { see(ctx, t, n) }
		if n%2 == 0 {
			c.Methods["own"] = policy()
		}
		return c
	}
	k, err := holdfast.New(config(0))
	require.NoError(t, err)
	var last atomic.Int64 // the last update that has returned
	var updates, calls sync.WaitGroup
	stop := make(chan struct{})
	updates.Go(func() {
		for n := int64(1); ; n++ {
			select {
			case <-stop:
				return
			default:
				if err := k.Update(config(n)); err != nil {
					t.Error(err)
				}
				last.Store(n)
			}
		}
	})
	updates.Go(func() { // refused ones beside them
		for {
			select {
			case <-stop:
				return
			default:
				bad := config(1)
				bad.Methods["own"] = holdfast.Policy{Bulkhead: &bulkhead.Config{}}
				if k.Update(bad) == nil {
					t.Error("a bad update was taken")
				}
			}
		}
	})
	for range 8 {
		calls.Go(func() {
			for i := 0; i < 200 || last.Load() < 40; i++ {
				if i >= 200 {
					// The updates get little of a busy machine, and so many failures as
					// the calls would bring about meanwhile open the breaker.
					time.Sleep(10 * time.Millisecond)
				}
				first := last.Load()
				s := &seen{n: -1}
				ctx := context.WithValue(t.Context(), seenKey{}, s)
				info := call.Info{Target: "db", Method: []string{"own", "other"}[i%2], Safety: call.ReadOnly}
				hits := 0
				_, err := holdfast.Do(ctx, k, info, func(context.Context) (int, error) {
					hits++
					return 0, errDown
				})
				if err == nil || s.n < first || hits != 2+int(s.n%4) {
					t.Errorf("a call after update %d ran under %d: %d attempts, %v", first, s.n, hits, err)
				}
			}
		})
	}
	calls.Wait()
	close(stop)
	updates.Wait()
	for name, b := range k.Breakers() {
		require.Zero(t, b.Counts().Unanswered, name)
		require.Equal(t, breaker.Closed, b.State())
	}
}

// D093: a configuration is copied, by New and by Update, down to its layers: what
// becomes of the caller's values while calls run changes nothing. In real time, for
// the race detector.
func TestD093_TheCallersValuesAreItsOwn(t *testing.T) {
	p := holdfast.Policy{
		Retry:    &retry.Policy{MaxAttempts: 2, Backoff: retry.NoWait(), Budget: retry.NoBudget()},
		Breaker:  &breaker.Config{Failures: 30_000},
		Timeout:  &timeout.Limits{Total: time.Hour},
		Bulkhead: &bulkhead.Config{Limit: 100},
	}
	c := holdfast.Config{Default: p, Methods: map[string]holdfast.Policy{"own": {Retry: p.Retry, Breaker: p.Breaker}}}
	var kits [2]*holdfast.Kit
	for i := range kits {
		var err error
		kits[i], err = holdfast.New(c)
		require.NoError(t, err)
	}
	require.NoError(t, kits[1].Update(c))
	var calls sync.WaitGroup
	for w := range 64 {
		calls.Go(func() {
			for i := range 50 {
				hits := 0
				_, _ = holdfast.Do(t.Context(), kits[w%2], call.Info{Target: "db", Method: []string{"own", "other"}[i%2], Safety: call.ReadOnly},
					func(context.Context) (int, error) { hits++; return 0, errDown })
				if hits != 2 {
					t.Errorf("%d attempts", hits)
				}
			}
		})
	}
	for i := range 1000 {
		p.Retry.MaxAttempts, p.Breaker.Failures, p.Timeout.Total, p.Bulkhead.Limit = 3+i%5, 1, time.Nanosecond, 1
		c.Methods["own"] = holdfast.Policy{Retry: retry.Off()}
		c.Methods["other"] = holdfast.Policy{Retry: retry.Off()}
	}
	calls.Wait()
}
