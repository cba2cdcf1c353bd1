package telemetry_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/breaker"
	"github.com/holdfast-go/holdfast/bulkhead"
	"github.com/holdfast-go/holdfast/call"
	"github.com/holdfast-go/holdfast/retry"
	"github.com/holdfast-go/holdfast/telemetry"
	"github.com/holdfast-go/holdfast/timeout"
)

// stage is a shop in the middle of an outage, with something of everything that a
// page can show.
type stage struct {
	shop, mail *holdfast.Kit
	page       *telemetry.Operations
	stop       func()
}

func shopPolicy() holdfast.Policy {
	return holdfast.Policy{
		Timeout: &timeout.Limits{Total: 2 * time.Second, Attempt: 800 * time.Millisecond},
		Retry:   &retry.Policy{MaxAttempts: 2, Backoff: retry.NoWait(), Budget: retry.Budget{Cap: 50, Initial: 30}},
		Breaker: &breaker.Config{
			Window: breaker.Window{Span: 10 * time.Second, Buckets: 20}, MinCalls: 20, FailureRate: 0.5, SlowCall: 40 * time.Millisecond,
			Cooldown: 20 * time.Second, MaxCooldown: 10 * time.Minute, ProbeTimeout: 30 * time.Second, RampUp: time.Minute, RampFrom: 0.2,
		},
		Bulkhead: &bulkhead.Config{Limit: 20, Queue: 10, MaxWait: time.Minute},
	}
}

// newStage plays about two seconds of traffic, in real time, since a browser is to
// look at it.
func newStage(t testing.TB) *stage {
	t.Helper()
	shop, err := holdfast.New(holdfast.Config{Name: "shop", Default: shopPolicy(), Methods: map[string]holdfast.Policy{
		"GET /items/{id}": {Retry: &retry.Policy{Hedge: retry.Hedge{Delay: 30 * time.Millisecond}}},
		"POST /orders":    {Retry: retry.Off(), Timeout: &timeout.Limits{Total: 5 * time.Second}},
	}})
	require.NoError(t, err)
	quickly := quick()
	quickly.Breaker.Cooldown = time.Millisecond
	quickly.Breaker.ProbeTimeout = time.Minute
	mail := newKit(t, "mail", quickly)
	s := &stage{shop: shop, mail: mail, page: telemetry.Page(shop, mail)}

	ctx, cancel := context.WithCancel(context.Background())
	s.stop = func() { cancel(); s.page.Close() }
	t.Cleanup(s.stop)
	one := func(k *holdfast.Kit, target, method string, safety call.Safety, err error, took time.Duration) {
		_, _ = holdfast.Do(ctx, k, call.Info{Target: target, Method: method, Safety: safety}, func(ctx context.Context) (int, error) {
			if took > 0 {
				time.Sleep(took) // stands for the work of a dependency
			}
			return 1, err
		})
	}
	hosts := []string{"https://catalog.internal:443", "https://search.internal:443", "https://prices.internal:443", "https://images.internal:443"}
	for round := range 16 {
		for i, host := range hosts {
			for n := range 6 + (round*(i+3))%9 {
				var err error
				if i == 1 && (n+round)%6 == 0 { // search is not well
					err = errDown
				}
				took := time.Duration(0)
				if i == 2 && n < 2 {
					took = 45 * time.Millisecond
				}
				one(shop, host, "GET /items/{id}", call.Idempotent, err, took)
			}
		}
		for range 3 {
			one(shop, "https://payments.internal:443", "POST /orders", call.Unsafe, nil, 0)
			if round > 11 {
				for range 4 {
					one(shop, "https://payments.internal:443", "POST /orders", call.Unsafe, errDown, 0)
				}
			}
		}
		time.Sleep(60 * time.Millisecond) // so that the window has more than one part
	}
	for range 40 {
		one(shop, "https://reviews.internal:443", "GET /items/{id}", call.ReadOnly, nil, 0)
	}
	for key, b := range shop.Breakers() {
		if key == "https://reviews.internal:443" {
			b.ForceOpen("ana: their database moves, until 15:00")
		}
	}
	for range 300 {
		one(shop, "https://payments.internal:443", "POST /orders", call.Unsafe, nil, 0)
	}
	// The mail server is being probed, by a call that takes its time.
	for range 5 {
		one(mail, "smtp.internal:25", "send", call.Unsafe, errDown, 0)
	}
	for range 2 {
		one(mail, "backup-smtp.internal:25", "send", call.Unsafe, nil, 0)
	}
	hang := func(k *holdfast.Kit, target string) {
		go func() {
			_, _ = holdfast.Do(ctx, k, call.Info{Target: target, Method: "GET /items/{id}"}, func(context.Context) (int, error) {
				<-ctx.Done()
				return 0, ctx.Err()
			})
		}()
	}
	time.Sleep(10 * time.Millisecond) // the cooldown
	hang(mail, "smtp.internal:25")
	for range 13 {
		hang(shop, "https://search.internal:443")
	}
	for range 23 {
		hang(shop, "https://images.internal:443")
	}
	require.Eventually(t, func() bool {
		waiting := 0
		for _, b := range shop.Bulkheads() {
			waiting += b.Waiting()
		}
		return waiting == 3
	}, 5*time.Second, time.Millisecond)
	return s
}

// names is for kits with many breakers.
func hostName(i int) string { return fmt.Sprintf("https://host-%05d.internal:443", i) }
