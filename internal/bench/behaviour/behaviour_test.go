package main

import (
	"bytes"
	"errors"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// The cells' processes are this test binary.
func TestMain(m *testing.M) {
	if !asCell() {
		os.Exit(m.Run())
	}
}

// right is what holdfast does, by the row. Times are left to the machine but
// where their being short is the point.
var right = map[string]string{
	"late success":              `^open after the success; the next call was refused$`,
	"late failure":              `^half-open before the failure, half-open after it, closed after the probe's success$`,
	"panicking probe":           `^the panic reached the caller; open after it; the next call was admitted after \d+`,
	"lost probe":                `^the next call was admitted after \d+`,
	"stuck half-open":           `^half-open after it; the next call was admitted after [0-9]0?m?s$`,
	"caller cancel counted":     `^closed; the next call was admitted$`,
	"callback re-entry":         `^returned; it saw open, a call refused$`,
	"retry over open circuit":   `^the circuit was asked 1 time; after 0s the caller got an error: .* is open$`,
	"POST repeated":             `^1 request; the caller got 503 Service Unavailable with 30 bytes$`,
	"body leak":                 `^20 of 20 succeeded, 60 requests, 1 connection, 0 bodies left open$`,
	"Retry-After of a day":      `^1 request; after 0s the caller got 503 Service Unavailable with 9 bytes$`,
	"duplicate stream messages": `^the caller got 1 2, then Unavailable; 1 stream opened$`,
}

func TestTheTable(t *testing.T) {
	seen, columns := runAll(func(string) bool { return true }), map[string]int{}
	for _, s := range seen {
		require.False(t, s.Broke, "%s, %s: %s", s.Row, s.Library, s.Did)
		require.NotEmpty(t, s.Did, "%s, %s", s.Row, s.Library)
		columns[s.Row]++
		if s.Library == "holdfast" {
			require.Regexp(t, right[s.Row], s.Did, s.Row)
			columns["holdfast"]++
		}
	}
	require.Equal(t, len(right), columns["holdfast"], "each row has holdfast")
	for row := range right {
		require.Greater(t, columns[row], 1, "%s: beside others", row)
	}
}

func TestADeadlockIsContained(t *testing.T) {
	did, err := within(func() (string, error) { select {} }, 10*time.Millisecond)
	require.NoError(t, err)
	require.Equal(t, "no end within 10ms: deadlock", did)
}

func TestWithinPassesOn(t *testing.T) {
	did, err := within(func() (string, error) { return "done", errors.New("but") }, time.Minute)
	require.EqualError(t, err, "but")
	require.Equal(t, "done", did)
}

// A cell that fails says so, rather than to pass for something seen.
func TestACellThatFailsSaysSo(t *testing.T) {
	s := sight{Row: "no such row", Library: "none"}
	s.look()
	require.True(t, s.Broke)
	require.Contains(t, s.Did, "there is no cell")
}

func TestReport(t *testing.T) {
	var out bytes.Buffer
	require.NoError(t, report(&out, "^late success$", false))
	require.Equal(t, 1, strings.Count(out.String(), "late success\n"))
	require.Contains(t, out.String(), "gobreaker")
	out.Reset()
	require.NoError(t, report(&out, "^late success$", true))
	require.True(t, strings.HasPrefix(out.String(), "["))
	require.ErrorContains(t, report(&out, "no such row", false), "no row matches")
	require.ErrorContains(t, report(&out, "(", false), "-run")
}
