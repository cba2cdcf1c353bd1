package breaker

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// gone is a store that never answers well.
type gone struct{ Store }

func (gone) Changes(context.Context, string, Mark) (Changes, error) {
	return Changes{}, errors.New("gone")
}

// B13: of breakers that were made one by one and dropped, a fleet keeps neither them
// nor their names, opened ones that the store was to hear of included.
func TestB13_AFleetForgetsBreakersThatAreGone(t *testing.T) {
	f, err := Join(Sharing{Store: gone{}})
	require.NoError(t, err)
	kept, err := f.Breaker("kept", Config{Consecutive: 1, Cooldown: time.Hour, MaxCooldown: time.Hour})
	require.NoError(t, err)
	most := 0
	for i := range 5000 {
		b, err := f.Breaker(fmt.Sprint("host-", i), Config{Consecutive: 1, Cooldown: time.Hour, MaxCooldown: time.Hour})
		require.NoError(t, err)
		tk, err := b.Allow()
		require.NoError(t, err)
		tk.Done(Outcome{Verdict: Failure})
		if i%100 == 99 {
			runtime.GC() // so that who is gone is known to be
		}
		f.mu.Lock()
		most = max(most, len(f.singles.all), len(f.unsaved.all))
		f.mu.Unlock()
	}
	require.Less(t, most, 1000, "names at any time")
	f.mu.Lock()
	defer f.mu.Unlock()
	require.NotEmpty(t, f.singles.all["kept"])
	runtime.KeepAlive(kept)
}
