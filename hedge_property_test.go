package holdfast

import (
	"context"
	"errors"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/holdfast-go/holdfast/breaker"
	"github.com/holdfast-go/holdfast/bulkhead"
	"github.com/holdfast-go/holdfast/call"
	"github.com/holdfast-go/holdfast/internal/mono"
	"github.com/holdfast-go/holdfast/retry"
	"github.com/holdfast-go/holdfast/timeout"
)

// R10, R1, K1, B1: whatever attempts, hedges and callers do, a call makes no more
// attempts than it may, all of them have returned when it does, every permit comes
// back and every admission ends; tokens are spent on what was sent and no more.
func TestR10_RacesLeaveNothingBehind(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) { rapid.SyncTest(t, checkRaces) })
}

func checkRaces(t *rapid.T) {
	attempts := rapid.IntRange(2, 5).Draw(t, "MaxAttempts")
	policy := Policy{
		Retry: &retry.Policy{
			MaxAttempts: attempts,
			Backoff:     retry.Backoff{Base: 3 * time.Millisecond, Jitter: retry.NoJitter},
			Budget:      retry.Budget{Initial: 20, Cap: 20, Share: 1e-9, PerSecond: 1e-6},
			Hedge: retry.Hedge{
				Delay: time.Duration(rapid.IntRange(1, 20).Draw(t, "Delay")) * time.Millisecond,
				Extra: rapid.IntRange(1, attempts-1).Draw(t, "Extra"),
			},
		},
		Breaker: &breaker.Config{
			Failures: rapid.IntRange(3, 20).Draw(t, "Failures"), Window: breaker.Window{Calls: 20},
			Cooldown: 50 * time.Millisecond, Stall: breaker.Stall{After: time.Hour, Calls: 1},
		},
		Timeout:  &timeout.Limits{Attempt: time.Duration(rapid.IntRange(0, 1).Draw(t, "Attempt")) * 30 * time.Millisecond},
		Bulkhead: &bulkhead.Config{Limit: rapid.IntRange(1, 4).Draw(t, "Limit"), Queue: rapid.IntRange(0, 2).Draw(t, "Queue")},
	}
	k, err := New(Config{Default: policy})
	require.NoError(t, err)
	table, err := k.bindPlain()
	require.NoError(t, err)
	m := table.find("any")
	info := call.Info{Target: "db", Safety: call.ReadOnly}
	s := m.state(&info, mono.Now())

	var calls sync.WaitGroup
	extra := make(chan int, 8)
	for range rapid.IntRange(1, 8).Draw(t, "calls") {
		ends := rapid.SliceOfN(rapid.SampledFrom([]string{"ok", "ok", "down", "down", "silent", "panic", "goexit", "cancelled"}), attempts, attempts).Draw(t, "ends")
		takes := rapid.SliceOfN(rapid.IntRange(0, 50), attempts, attempts).Draw(t, "takes")
		starts := rapid.IntRange(0, 50).Draw(t, "starts")
		leaves := rapid.SampledFrom([]int{5, 20, 500, 500, 500}).Draw(t, "leaves")
		calls.Add(1)
		go func() {
			defer calls.Done()
			time.Sleep(time.Duration(starts) * time.Millisecond)
			ctx, cancel := context.WithTimeout(context.Background(), time.Duration(leaves)*time.Millisecond)
			defer cancel()
			var made tally
			defer func() {
				_ = recover()
				made.Lock()
				defer made.Unlock()
				if made.n > attempts || made.running != 0 {
					t.Errorf("%d attempts, of which %d still run", made.n, made.running)
				}
				extra <- max(made.n-1, 0)
			}()
			_, _ = Do(ctx, k, info, func(ctx context.Context) (int, error) {
				n := made.begin()
				defer made.end()
				if n >= attempts {
					return 0, nil // one too many, told of above
				}
				select {
				case <-time.After(time.Duration(takes[n]) * time.Millisecond):
				case <-ctx.Done():
					return 0, ctx.Err()
				}
				switch ends[n] {
				case "down":
					return 0, errors.New("down")
				case "silent":
					<-ctx.Done()
					return 0, ctx.Err()
				case "panic":
					panic("a bug")
				case "goexit":
					runtime.Goexit()
				case "cancelled":
					return 0, context.Canceled
				}
				return n, nil
			})
		}()
	}
	calls.Wait()
	close(extra)
	spent := 0
	for n := range extra {
		spent += n
	}
	require.Zero(t, s.bulkhead.InUse())
	require.Zero(t, s.bulkhead.Waiting())
	require.Zero(t, s.breaker.Counts().Unanswered, "an admission has not ended")
	require.Zero(t, s.breaker.Counts().Probes)
	// A retry that a layer refuses after its wait has paid without being made.
	require.LessOrEqual(t, spent, 20)
	require.LessOrEqual(t, s.bucket.Tokens(), 20-float64(spent)+0.01)
}

// tally counts the attempts of one call.
type tally struct {
	sync.Mutex
	n, running int
}

func (r *tally) begin() int {
	r.Lock()
	defer r.Unlock()
	r.n++
	r.running++
	return r.n - 1
}

func (r *tally) end() {
	r.Lock()
	defer r.Unlock()
	r.running--
}
