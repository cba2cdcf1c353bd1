package mono_test

import (
	"math"
	"reflect"
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

func TestTheInstantOfATime(t *testing.T) {
	near := func(t *testing.T, in time.Duration, at mono.Instant) {
		t.Helper()
		require.InDelta(t, in, at.Sub(mono.Now()), float64(time.Second))
	}
	for _, in := range []time.Duration{-time.Hour, 0, time.Hour} {
		near(t, in, mono.Of(time.Now().Add(in)))
		near(t, in, mono.Of(time.Now().Add(in).Round(0)))
		synctest.Test(t, func(t *testing.T) {
			require.Equal(t, in, mono.Of(time.Now().Add(in)).Sub(mono.Now()))
		})
	}
}

func TestAddDoesNotOverflow(t *testing.T) {
	endless := func(t *testing.T) {
		now := mono.Now()
		require.Greater(t, now.Add(math.MaxInt64).Sub(now), 100*365*24*time.Hour)
		require.True(t, now.Add(-time.Hour).Before(now))
	}
	endless(t)
	synctest.Test(t, endless)
}

func TestReadingTheClockDoesNotAllocate(t *testing.T) {
	require.Zero(t, testing.AllocsPerRun(100, func() { mono.Now() }))
}

// An untyped constant is no Instant, so that nobody outside of the module can call
// the exported methods that take one.
func TestAConstantIsNoInstant(t *testing.T) {
	require.Equal(t, reflect.Struct, reflect.TypeFor[mono.Instant]().Kind())
}

func TestInstantsAreOrdered(t *testing.T) {
	now := mono.Now()
	row := []mono.Instant{mono.First(), now.Add(-1), now, now.Add(1), mono.Last()}
	for i, u := range row {
		require.Equal(t, u, mono.Unpack(u.Pack()))
		for j, v := range row {
			require.Equal(t, i < j, u.Before(v))
			require.Equal(t, i > j, u.After(v))
			require.Equal(t, row[min(i, j)], mono.Earlier(u, v))
			require.Equal(t, row[max(i, j)], mono.Later(u, v))
		}
	}
}
