package holdfast_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/call"
	"github.com/holdfast-go/holdfast/fallback"
	"github.com/holdfast-go/holdfast/retry"
)

// ends returns hooks that note in seen what they are told of a call's end.
func ends(seen *[]string) holdfast.Hooks {
	return holdfast.Hooks{
		Call: func(context.Context, call.Info) (context.Context, func(holdfast.CallEnd)) {
			return nil, func(holdfast.CallEnd) { *seen = append(*seen, "call") }
		},
		Returned: func(context.Context, holdfast.Returned) { *seen = append(*seen, "returned") },
		Fallback: func(context.Context, holdfast.Fallback) { *seen = append(*seen, "fallback") },
	}
}

func TestO1_AFallbackIsToldBeforeTheEndOfItsCall(t *testing.T) {
	for name, change := range map[string]func(*holdfast.Policy){
		"answers": func(*holdfast.Policy) {},
		"answers a hedge": func(p *holdfast.Policy) {
			p.Retry = &retry.Policy{MaxAttempts: 2, Hedge: retry.Hedge{Delay: time.Second}}
		},
		"does not fit": func(p *holdfast.Policy) {
			p.Fallback = &fallback.Policy{Answer: func(context.Context, fallback.Failure) (any, error) { return "seven", nil }}
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := quick()
				p.Retry = retry.Off()
				p.Fallback = &fallback.Policy{Answer: func(context.Context, fallback.Failure) (any, error) { return 7, nil }}
				change(&p)
				var seen []string
				k, err := holdfast.New(holdfast.Config{Default: p, Hooks: ends(&seen)})
				require.NoError(t, err)
				_, _ = holdfast.Do(t.Context(), k, read, func(context.Context) (int, error) { return 0, errDown })
				require.Equal(t, []string{"fallback", "returned", "call"}, seen)
			})
		})
	}
}

// Should the hook panic, nobody gets the answer, and the end says so.
func TestO1_AFallbackWhoseHookPanicsIsNoAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := quick()
		p.Retry = retry.Off()
		p.Fallback = &fallback.Policy{Answer: func(context.Context, fallback.Failure) (any, error) { return 7, nil }}
		var told []holdfast.CallEnd
		k, err := holdfast.New(holdfast.Config{Default: p, Hooks: holdfast.Hooks{
			Call: func(context.Context, call.Info) (context.Context, func(holdfast.CallEnd)) {
				return nil, func(end holdfast.CallEnd) { told = append(told, end) }
			},
			Fallback: func(context.Context, holdfast.Fallback) { panic("hook") },
		}})
		require.NoError(t, err)
		require.PanicsWithValue(t, "hook", func() {
			_, _ = holdfast.Do(t.Context(), k, read, func(context.Context) (int, error) { return 0, errDown })
		})
		require.Len(t, told, 1)
		require.False(t, told[0].Fallback)
		require.Equal(t, call.ServerFault, told[0].Result.Class)
	})
}
