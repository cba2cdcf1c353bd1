package holdfast_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/call"
	"github.com/holdfast-go/holdfast/retry"
	"github.com/holdfast-go/holdfast/timeout"
)

// What the layers cost a call in allocations: nothing without a limit of the
// kit's and without retry, one for a limit while nobody waits for its context, one
// mark where it may be repeated. That the policy could hedge costs calls nothing
// that are not.
func TestAllocations(t *testing.T) {
	sooner, cancel := context.WithTimeout(t.Context(), 5*time.Second)
	defer cancel()
	hedge := &retry.Policy{Hedge: retry.Hedge{Percentile: 0.95}}
	for name, tc := range map[string]struct {
		policy holdfast.Policy
		ctx    context.Context
		safety call.Safety
		want   float64
	}{
		"no limit, once":                {holdfast.Policy{Retry: retry.Off(), Timeout: timeout.Off()}, t.Context(), call.ReadOnly, 0},
		"the caller's deadline sooner":  {holdfast.Policy{Retry: retry.Off()}, sooner, call.ReadOnly, 0},
		"a limit, once":                 {holdfast.Policy{Retry: retry.Off()}, t.Context(), call.ReadOnly, 1},
		"a limit, repeatable":           {holdfast.Policy{}, t.Context(), call.ReadOnly, 2},
		"no limit, hedged were it safe": {holdfast.Policy{Retry: hedge, Timeout: timeout.Off()}, t.Context(), call.Unsafe, 1},
	} {
		k, info := newKit(t, tc.policy), call.Info{Target: "db", Method: "select", Safety: tc.safety}
		require.Equal(t, tc.want, testing.AllocsPerRun(200, func() {
			_, _ = holdfast.Do(tc.ctx, k, info, func(context.Context) (int, error) { return 1, nil })
		}), name)
	}
}
