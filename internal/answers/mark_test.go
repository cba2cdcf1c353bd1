package answers_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-go/holdfast/call"
	"github.com/holdfast-go/holdfast/fallback"
	"github.com/holdfast-go/holdfast/internal/answers"
)

func TestMarks(t *testing.T) {
	e := answers.Entry{Age: 90 * time.Second, Fresh: 30 * time.Second}
	require.Equal(t, "holdfast; hit; ttl=-60; detail=refused", e.CacheStatus(call.Refused))
	require.Equal(t, "90", e.AgeSeconds())
	require.Equal(t, "holdfast; fwd=miss; detail=computed-for-timed_out", answers.ComputedStatus(call.TimedOut))
	require.True(t, fallback.MarkedBy([]string{"CDN; hit", "edge; fwd=miss, " + e.CacheStatus(call.Refused)}))
	require.True(t, fallback.MarkedBy([]string{answers.ComputedStatus(call.TimedOut)}))
}
