package holdfast_test

import (
	"context"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/breaker"
	"github.com/holdfast-go/holdfast/call"
	"github.com/holdfast-go/holdfast/internal/wire"
	"github.com/holdfast-go/holdfast/retry"
)

// namesAsTheyAre is a protocol whose every name stands for itself.
var namesAsTheyAre = wire.Protocol{
	Name:      "test",
	Parse:     func(name string) (string, error) { return name, nil },
	OneMethod: func(string) bool { return true },
	Declared:  func(string) call.Safety { return call.SafetyUnknown },
	Find: func(string, func(string) bool, any) (string, string, call.Safety, bool) {
		return "", "", call.SafetyUnknown, false
	},
}

// R8, D044: layers do not multiply unless they are told to.
func TestR8_NestedCallsDoNotRetry(t *testing.T) {
	for name, tc := range map[string]struct {
		outer, inner *retry.Policy
		hits         int
	}{
		"by default":                    {nil, nil, 3},
		"told to":                       {nil, &retry.Policy{MaxAttempts: 3, Backoff: retry.NoWait(), EvenNested: true}, 9},
		"the outer one does not retry":  {retry.Off(), nil, 3},
		"the outer one has one attempt": {&retry.Policy{MaxAttempts: 1}, nil, 3},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				kit := func(r *retry.Policy) *holdfast.Kit {
					p := quick()
					p.Breaker.Consecutive, p.Breaker.FailureRate, p.Breaker.MinCalls = 100, 0, 0
					if r != nil {
						p.Retry = r
					}
					return newKit(t, p)
				}
				outer, middle, inner := kit(tc.outer), kit(retry.Off()), kit(tc.inner)
				s := answers(down)
				_, err := holdfast.Do(t.Context(), outer, read, func(ctx context.Context) (string, error) {
					// A layer between them that does not retry hides nothing.
					return holdfast.Do(ctx, middle, read, func(ctx context.Context) (string, error) {
						return do(ctx, inner, read, s)
					})
				})
				require.ErrorIs(t, err, errDown)
				require.Equal(t, tc.hits, s.hits)

				s = answers(down)
				_, _ = do(t.Context(), inner, read, s)
				require.Equal(t, 3, s.hits, "alone it retries")
			})
		})
	}
}

// R9: with the switch on, an unsafe call may be repeated.
func TestR9_AKeyAllowsARepeat(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := quick()
		p.Breaker, p.Retry.IdempotencyKey = breaker.Off(), true
		for safety, key := range map[call.Safety]bool{call.SafetyUnknown: true, call.Unsafe: true, call.Idempotent: false, call.ReadOnly: false} {
			k := newKit(t, p)
			m, err := k.Bind(namesAsTheyAre)
			require.NoError(t, err)
			keys := map[string]bool{}
			for range 2 {
				var c holdfast.Call
				_, err := c.Begin(t.Context(), m.Table().Default(), call.Info{Target: safety.String(), Safety: safety}, holdfast.Terms{})
				require.NoError(t, err)
				require.Equal(t, key, c.Key() != "")
				keys[c.Key()] = true
			}
			require.Equal(t, key, len(keys) == 2, "each call has its own")
			for _, own := range []bool{true, false} {
				var c holdfast.Call
				ctx, err := c.Begin(t.Context(), m.Table().Default(), call.Info{Target: safety.String(), Safety: safety}, holdfast.Terms{Keyed: own})
				require.NoError(t, err)
				require.Equal(t, key && !own, c.Key() != "", "the caller's own wins")
				_, err = c.Run(ctx, func(context.Context, int) { c.End(fault) })
				require.ErrorIs(t, err, errDown)
				require.Equal(t, 3, c.Attempt(), safety)
			}
		}
	})
}

// R2, R9: what Do calls is told of no key, and so may not be repeated for one.
func TestR9_DoHasNothingToCarryAKey(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := quick()
		p.Retry.IdempotencyKey = true
		s := answers(down, down, down)
		_, err := do(t.Context(), newKit(t, p), call.Info{Target: "db", Safety: call.Unsafe}, s)
		require.ErrorIs(t, err, errDown)
		require.Equal(t, 1, s.hits)
	})
}
