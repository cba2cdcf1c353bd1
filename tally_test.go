package holdfast_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/call"
)

func TestATallyHasNothingOfWhatIsNoClassAndNoCause(t *testing.T) {
	k := newKit(t, quick())
	k.Count()
	_, _ = holdfast.Do(t.Context(), k, read, func(context.Context) (int, error) { return 0, errDown })
	seen := 0
	for _, tally := range k.Tallies() {
		seen++
		require.EqualValues(t, 1, tally.Calls(call.ServerFault))
		for _, class := range []call.Class{0, 99, 255} {
			require.Zero(t, tally.Calls(class))
			require.Zero(t, tally.Attempts(class))
		}
		for _, cause := range []holdfast.Cause{holdfast.Cause(len(holdfast.Causes())), 99, 255} {
			require.Zero(t, tally.Refusals(cause))
			require.Zero(t, tally.Denied(cause))
		}
	}
	require.Equal(t, 1, seen)
}
