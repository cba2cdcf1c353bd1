package mono_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-go/holdfast/internal/mono"
)

func TestInstantsFollowVirtualTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		start := mono.Now()
		time.Sleep(90 * time.Second)
		require.Equal(t, 90*time.Second, mono.Now().Sub(start))
		require.Equal(t, mono.Now(), start.Add(90*time.Second))
	})
}

func TestReadingTheClockDoesNotAllocate(t *testing.T) {
	require.Zero(t, testing.AllocsPerRun(100, func() { mono.Now() }))
}
