package main

import (
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/breaker"
	"github.com/holdfast-go/holdfast/bulkhead"
	"github.com/holdfast-go/holdfast/retry"
	"github.com/holdfast-go/holdfast/timeout"
)

// callTimeout is what the application gives a call, with the kit and without.
const callTimeout = 400 * time.Millisecond

// protection is the policy of every method of the shop, which answers within a
// few milliseconds when it is well. What it leaves out, such as Retry, is
// holdfast.Standard's.
func protection() holdfast.Policy {
	return holdfast.Policy{
		// Half of the call's time for an attempt leaves room for a second one.
		Timeout: &timeout.Limits{Total: callTimeout, Attempt: callTimeout / 2},

		Breaker: &breaker.Config{
			// Errors: half of the results of the last 5 s.
			Window:      breaker.Window{Span: 5 * time.Second},
			FailureRate: 0.5,
			// Silence: seen before the first attempt's limit has passed.
			Stall: breaker.Stall{After: 120 * time.Millisecond, Calls: 5},
			// The shop comes back quickly when it does, so that it is asked
			// often: after 250 ms, then half a second after each probe that gets
			// no answer. Three good answers in a row, the default, close the
			// breaker.
			Cooldown:    250 * time.Millisecond,
			MaxCooldown: 500 * time.Millisecond,
		},

		// A few in flight are usual, so that ten say that the shop is in trouble:
		// more would only be stuck as well. A burst waits a little.
		Bulkhead: &bulkhead.Config{Limit: 10, Queue: 30, MaxWait: 50 * time.Millisecond},
	}
}

// lookup is the policy of a read: cheap to repeat, and somebody waits for it.
// All layers but Retry are inherited, the breaker's knowledge of the shop with
// them.
var lookup = holdfast.Policy{
	Retry: &retry.Policy{MaxAttempts: 3, Backoff: retry.Backoff{Base: 10 * time.Millisecond, Cap: 100 * time.Millisecond}},
}

// order is the policy of an order, which gets one attempt and all the time there
// is for it. That it is not repeated needs no word here: HTTP says so of a POST,
// and the kit takes it for granted of a gRPC method that declares nothing else.
var order = holdfast.Policy{
	Timeout: &timeout.Limits{Total: callTimeout, Attempt: callTimeout},
}

// bothKits returns a kit for each wire.
func bothKits() (map[string]*holdfast.Kit, error) {
	overGRPC, err := grpcKit()
	if err != nil {
		return nil, err
	}
	overHTTP, err := httpKit()
	return map[string]*holdfast.Kit{"grpc": overGRPC, "http": overHTTP}, err
}

// grpcKit is the kit for the shop over gRPC.
func grpcKit() (*holdfast.Kit, error) {
	return holdfast.New(holdfast.Config{
		Name:    "shop-grpc",
		Default: protection(),
		Methods: map[string]holdfast.Policy{
			"/shop.v1.Catalog/GetItem":    lookup,
			"/shop.v1.Catalog/PlaceOrder": order,
		},
	})
}

// httpKit is the kit for the shop over HTTP.
func httpKit() (*holdfast.Kit, error) {
	return holdfast.New(holdfast.Config{
		Name:    "shop-http",
		Default: protection(),
		Methods: map[string]holdfast.Policy{
			"GET /items/{id}": lookup,
			"POST /orders":    order,
		},
	})
}
