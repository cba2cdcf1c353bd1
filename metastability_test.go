package holdfast_test

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/breaker"
	"github.com/holdfast-go/holdfast/bulkhead"
	"github.com/holdfast-go/holdfast/call"
	"github.com/holdfast-go/holdfast/retry"
	"github.com/holdfast-go/holdfast/timeout"
)

// 1,000 clients at 80 % of what a server bears, and an outage of 10 s.
const (
	slots    = 25
	service  = 50 * time.Millisecond
	capacity = slots * int(time.Second/service) // 500 requests a second
	clients  = 1000
	offered  = capacity * 8 / 10
	period   = clients * time.Second / time.Duration(offered) // between two calls of a client

	outageAt  = 20 * time.Second
	outageEnd = outageAt + 10*time.Second
	length    = outageEnd + 30*time.Second
)

var errBacklogFull = errors.New("the backlog is full")

// queueServer serves requests from a queue, first come, first served, in a fixed
// number of slots. It cannot tell whether the caller still waits: whatever is in
// the queue is served. During the outage it accepts and serves nothing.
type queueServer struct {
	begin time.Time
	queue chan chan<- struct{}
	slots sync.WaitGroup
	over  atomic.Bool

	accepted, turnedAway, wasted atomic.Int64
}

func newQueueServer(backlog int) *queueServer {
	s := &queueServer{begin: time.Now(), queue: make(chan chan<- struct{}, backlog)}
	for range slots {
		s.slots.Go(func() {
			for answer := range s.queue {
				if s.over.Load() {
					continue
				}
				if at := time.Since(s.begin); at >= outageAt && at < outageEnd {
					time.Sleep(outageEnd - at)
				}
				time.Sleep(service)
				answer <- struct{}{}
			}
		})
	}
	return s
}

func (s *queueServer) serve(ctx context.Context) (struct{}, error) {
	answer := make(chan struct{}, 1)
	select {
	case s.queue <- answer:
		s.accepted.Add(1)
	default:
		s.turnedAway.Add(1)
		return struct{}{}, errBacklogFull
	}
	select {
	case <-answer:
		return struct{}{}, nil
	case <-ctx.Done():
		s.wasted.Add(1)
		return struct{}{}, ctx.Err()
	}
}

func (s *queueServer) close() {
	s.over.Store(true)
	close(s.queue)
	s.slots.Wait()
}

// storm lets the clients call and returns how many calls succeeded in each
// second, and how many calls began later than they should have. All share one kit, as the goroutines of one process do.
func storm(t *testing.T, p holdfast.Policy, backlog int) (served []int, s *queueServer, fellBehind int64) {
	k := newKit(t, p)
	s = newQueueServer(backlog)
	info := call.Info{Target: "server", Method: "read", Safety: call.ReadOnly}
	var perSecond [length/time.Second + 2]atomic.Int64
	var late atomic.Int64
	var all sync.WaitGroup
	for i := range clients {
		all.Go(func() {
			for next := time.Duration(i) * period / clients; next < length; next += period {
				wait := next - time.Since(s.begin)
				if wait < 0 {
					late.Add(1)
				}
				time.Sleep(wait)
				if _, err := holdfast.Do(t.Context(), k, info, s.serve); err == nil {
					perSecond[time.Since(s.begin)/time.Second].Add(1)
				}
			}
		})
	}
	all.Wait()
	s.close()
	for i := range perSecond[:length/time.Second] {
		served = append(served, int(perSecond[i].Load()))
	}
	return served, s, late.Load()
}

// recovered returns how long after the outage the served rate was back above
// 95 % of the offered one for good, in whole seconds.
func recovered(served []int) time.Duration {
	for i := len(served) - 1; i >= 0; i-- {
		if served[i]*100 < offered*95 {
			return time.Duration(i+1)*time.Second - outageEnd
		}
	}
	return -outageEnd
}

// TestAnOutageEndsWhenTheDependencyIsBack shows the metastable failure that
// retries make of an outage, and what prevents it. A caller gives up after
// 300 ms; while the queue is longer than that, the server works for nobody, and
// if each call is repeated the queue never becomes shorter again.
//
// The policy is the standard one but for Attempt, which is 10 s there: the
// scenario needs callers that give up during the outage, and whose three
// attempts fit between two calls, so that the offered rate does not depend on
// the answers. Whatever else a case changes it says; one has the standard Attempt.
func TestAnOutageEndsWhenTheDependencyIsBack(t *testing.T) {
	const large, unbounded = capacity, 1 << 20 // 1 s of work, and more than ever comes
	noBudget := func(p *holdfast.Policy) { p.Retry.Budget = retry.NoBudget() }
	noBreaker := func(p *holdfast.Policy) { p.Breaker = breaker.Off() }
	patient := func(p *holdfast.Policy) { p.Timeout = holdfast.Standard().Timeout }
	adaptive := func(p *holdfast.Policy) { p.Bulkhead.Adaptive = bulkhead.Adaptive{Min: 5} }
	for name, tc := range map[string]struct {
		backlog int
		change  []func(*holdfast.Policy)
		within  time.Duration // of the outage's end; zero is: not at all
	}{
		// Who waits 10 s falls behind, and offers what he has missed afterwards.
		"standard, and callers that wait": {large, []func(*holdfast.Policy){patient}, 10 * time.Second},

		"standard":                      {large, nil, 10 * time.Second},
		"standard without breaker":      {large, []func(*holdfast.Policy){noBreaker}, 10 * time.Second},
		"without budget and breaker":    {large, []func(*holdfast.Policy){noBudget, noBreaker}, 0},
		"unbounded queue, without both": {unbounded, []func(*holdfast.Policy){noBudget, noBreaker}, 0},

		// Ten seconds of requests wait in the queue when the outage ends. The
		// breaker opens at about that moment, since it weighs 20 s; its first
		// probe, some 5 s later, still ends in the queue, and the second comes
		// after the longer cooldown.
		"unbounded queue, standard": {unbounded, nil, 20 * time.Second},
		// A limit that shrinks keeps the queue from filling.
		"unbounded queue, adaptive limit": {unbounded, []func(*holdfast.Policy){adaptive}, 10 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := holdfast.Standard()
				p.Timeout = &timeout.Limits{Total: p.Timeout.Total, Attempt: 300 * time.Millisecond}
				for _, change := range tc.change {
					change(&p)
				}
				served, s, fellBehind := storm(t, p, tc.backlog)
				back, last := recovered(served), mean(served[(outageEnd+10*time.Second)/time.Second:])
				t.Logf("of %d a second, served from 10 s after the outage on: %.0f; above 95 %% after %v; accepted %d, turned away %d, in vain %d",
					offered, last, back, s.accepted.Load(), s.turnedAway.Load(), s.wasted.Load())
				t.Logf("each second from the outage on: %v", served[outageAt/time.Second:])

				if p.Timeout.Attempt < period {
					require.Zero(t, fellBehind, "a client that falls behind offers less than it should")
				}
				require.GreaterOrEqual(t, mean(served[1:outageAt/time.Second]), 0.99*float64(offered))
				require.Zero(t, mean(served[outageAt/time.Second+1:outageEnd/time.Second]))
				if tc.within == 0 {
					require.Less(t, last, 0.05*float64(offered))
					return
				}
				require.LessOrEqual(t, back, tc.within)
				require.GreaterOrEqual(t, mean(served[(outageEnd+tc.within)/time.Second:]), 0.95*float64(offered))
			})
		})
	}
}

func mean(counts []int) float64 {
	sum := 0
	for _, n := range counts {
		sum += n
	}
	return float64(sum) / float64(len(counts))
}

// What the breaker takes for a failure shrinks an adaptive limit, throttling
// does too, and a neutral end does not.
func TestAnAdaptiveLimitHearsHowAttemptsEnd(t *testing.T) {
	throttled := errors.New("slow down")
	for name, tc := range map[string]struct {
		step  func(context.Context) error
		limit int
	}{
		"an answer":         {ok, 4},
		"a failure":         {down, 2},
		"a timeout":         {silent, 2},
		"throttled":         {func(context.Context) error { return throttled }, 2},
		"a caller gone":     {nil, 4},
		"another's refusal": {func(context.Context) error { return bulkhead.ErrFull }, 4},
		"a panic":           {func(context.Context) error { panic("broken") }, 2},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				k := newKit(t, holdfast.Policy{
					Retry: retry.Off(), Breaker: breaker.Off(), Timeout: &timeout.Limits{Attempt: time.Second},
					Bulkhead: &bulkhead.Config{Limit: 4, Adaptive: bulkhead.Adaptive{Min: 1}},
					Classify: func(_ context.Context, _ call.Info, res call.Result) call.Result {
						if errors.Is(res.Err, throttled) {
							res.Class = call.Throttled
						}
						return res
					},
				})
				ctx, cancel := context.WithCancel(t.Context())
				step := tc.step
				if step == nil {
					step = func(ctx context.Context) error { cancel(); return ctx.Err() }
				}
				func() {
					defer func() { _ = recover() }()
					_, _ = do(ctx, k, read, answers(step))
				}()
				cancel()

				inside := answers(silent)
				var all sync.WaitGroup
				for range 10 {
					all.Go(func() { _, _ = do(t.Context(), k, read, inside) })
				}
				all.Wait()
				require.Equal(t, tc.limit, inside.hits)
			})
		})
	}
}
