package holdfast

import (
	"context"

	"github.com/holdfast-go/holdfast/call"
	"github.com/holdfast-go/holdfast/internal/latency"
	"github.com/holdfast-go/holdfast/internal/mono"
)

// Hedged reports whether the call's attempts may be hedged; they are to be made
// with [Call.Race] or [Call.RunHedged] then.
func (c *Call) Hedged() bool { return c.hedged }

// mayHedge reports whether the policy asks for hedges and the call allows them.
// An idempotency key does not: it is a promise about one attempt after another.
// Where there are several upstreams, they take the hedges' place.
func (c *Call) mayHedge() bool {
	return c.hedges && c.MayRetry() && !c.stream && c.walk == nil && c.info.Safety.Repeatable()
}

// mayAdd reports whether the call has an attempt left.
func (c *Call) mayAdd() bool { return c.attempts < c.retry.WithDefaults().MaxAttempts }

// RunHedged is [Call.Run] for a call that may be hedged: where Run makes an
// attempt, it lets several race. begin prepares the n-th attempt of the call on
// the caller's goroutine, and returns what makes it, on any goroutine, and what
// is called, on the caller's, if the attempt has won.
func (c *Call) RunHedged(
	ctx context.Context, begin func(n int) (attempt func(context.Context, int) call.Result, won func()),
) (answer any, err error) {
	lanes := func(n int) Lane {
		l := &runLane{call: c, caller: ctx, n: n}
		l.make, l.won = begin(n)
		return l
	}
	returned := false
	defer func() { c.close(ctx, err, returned) }()
	for res := (call.Result{}); c.Next(ctx, &res, nil); { // Retry(
		res = c.Race(ctx, false, lanes)
	}
	answer, err = c.Fallback(ctx) // Fallback(
	returned = true
	return answer, err
}

// runLane is an attempt that ends when its function returns.
type runLane struct {
	call    *Call
	caller  context.Context
	n       int
	attempt Attempt
	make    func(context.Context, int) call.Result
	won     func()
}

func (l *runLane) Held() *Attempt { return &l.attempt }

func (l *runLane) Run(ctx context.Context) (res call.Result) {
	l.call.within(l.caller, ctx, &l.attempt, l.n, func(ctx context.Context, n int) { res = l.make(ctx, n) }, &res)
	return res
}

func (l *runLane) End(won bool) {
	if won {
		l.won()
	}
}

// impatient is the context with which a hedge asks for a permit. It seems to be
// done, and so gets one that is free and no place in the queue: who waits there
// is not to wait for hedges.
type impatient struct{ context.Context }

func (impatient) Err() error { return context.Canceled }

// latencyFor returns the record of the call's target, nil if there is none.
func (m *Method) latencyFor(info call.Info, now mono.Instant) *latency.Record {
	l := &m.retry
	if l.policy == nil || l.level.latencies == nil {
		return nil
	}
	return l.level.latencies.For(l.level.key(info.Target), now)
}
