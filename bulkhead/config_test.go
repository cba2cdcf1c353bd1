package bulkhead

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestD059_BadConfigsAreNamed(t *testing.T) {
	for want, c := range map[string]Config{
		"bulkhead: Limit = 0: must be at least 1; bulkhead.Off() limits nothing":                                                                         {},
		"bulkhead: Limit = -1: must be at least 1; bulkhead.Off() limits nothing":                                                                        {Limit: -1},
		"bulkhead: Queue = -1: must not be negative; 0 is no queue":                                                                                      {Limit: 1, Queue: -1},
		"bulkhead: MaxWait = -1s: must not be negative; 0 waits as long as the context lasts":                                                            {Limit: 1, Queue: 1, MaxWait: -time.Second},
		"bulkhead: MaxWait = 1s: has no effect without a Queue":                                                                                          {Limit: 1, MaxWait: time.Second},
		"bulkhead: Scope = scope(9): is not one of the scopes of package bulkhead":                                                                       {Limit: 1, Scope: 9},
		"bulkhead: bad configuration\n\tLimit = 0: must be at least 1; bulkhead.Off() limits nothing\n\tQueue = -2: must not be negative; 0 is no queue": {Queue: -2},
	} {
		b, err := New("b", c)
		require.EqualError(t, err, want)
		require.Nil(t, b)
	}
}

func TestOffLimitsNothingAndSurvivesCopying(t *testing.T) {
	c := *Off()
	require.True(t, c.IsOff())
	require.NoError(t, c.Check())
	b := newBulkhead(t, c)
	release := hold(t, b, 10_000)
	for range 10_000 {
		release()
	}
	require.False(t, (&Config{}).IsOff())
	require.False(t, (*Config)(nil).IsOff())
}
