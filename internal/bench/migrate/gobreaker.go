package migrate

import (
	"context"
	"database/sql"
	"errors"
	"time"

	"github.com/sony/gobreaker/v2"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/breaker"
	"github.com/holdfast-go/holdfast/bulkhead"
	"github.com/holdfast-go/holdfast/call"
	"github.com/holdfast-go/holdfast/retry"
	"github.com/holdfast-go/holdfast/timeout"
)

func gobreakerBefore(ctx context.Context, query func(context.Context) (int, error)) func() (int, error) {
	cb := gobreaker.NewCircuitBreaker[int](gobreaker.Settings{
		Name:        "orders-db",
		MaxRequests: 1,
		Interval:    20 * time.Second,
		Timeout:     5 * time.Second,
		ReadyToTrip: func(c gobreaker.Counts) bool { return c.ConsecutiveFailures >= 5 },
		IsSuccessful: func(err error) bool {
			return err == nil || errors.Is(err, sql.ErrNoRows)
		},
	})
	return func() (int, error) {
		return cb.Execute(func() (int, error) { return query(ctx) })
	}
}

func gobreakerAfter(ctx context.Context, query func(context.Context) (int, error)) (func() (int, error), error) {
	kit, err := holdfast.New(holdfast.Config{Default: holdfast.Policy{
		Breaker: &breaker.Config{Consecutive: 5, Cooldown: 5 * time.Second, ProbeSuccesses: 1},
		Retry:   retry.Off(), // these three as before; leave them out to have the standard
		Timeout: timeout.Off(), Bulkhead: bulkhead.Off(),
		Classify: func(_ context.Context, _ call.Info, res call.Result) call.Result {
			if errors.Is(res.Err, sql.ErrNoRows) {
				res.Class = call.ClientFault // an answer
			}
			return res
		},
	}})
	if err != nil {
		return nil, err
	}
	info := call.Info{Target: "orders-db", Method: "count", Safety: call.ReadOnly}
	return func() (int, error) { return holdfast.Do(ctx, kit, info, query) }, nil
}
