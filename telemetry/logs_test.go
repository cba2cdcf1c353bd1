package telemetry_test

import (
	"bytes"
	"encoding/json"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-go/holdfast/call"
	"github.com/holdfast-go/holdfast/telemetry"
)

// logged returns the records in buf as "LEVEL message key=value...", without the
// time, and empties it.
func logged(t *testing.T, buf *bytes.Buffer) (lines []string) {
	t.Helper()
	for text := range strings.Lines(buf.String()) {
		var record map[string]any
		require.NoError(t, json.Unmarshal([]byte(text), &record))
		line := record["level"].(string) + " " + record["msg"].(string)
		for _, key := range []string{"kit", "breaker", "from", "to", "reason", "note", "outcome"} {
			if v, ok := record[key]; ok {
				line += " " + key + "=" + v.(string)
			}
		}
		lines = append(lines, line)
	}
	buf.Reset()
	return lines
}

// TestO1, B12: transitions at Info, a failed probe at Warn, manual actions with
// their reason, and nothing for a call.
func TestO1_LogsTellWhatIsWorthIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := newKit(t, "shop", quick())
		var buf bytes.Buffer
		stop := telemetry.Logs{Logger: slog.New(slog.NewJSONHandler(&buf, nil))}.Attach(k)
		for range 100 {
			require.NoError(t, do(t.Context(), k, read, nil))
		}
		require.Empty(t, logged(t, &buf))
		open(t, k, read)
		require.Equal(t, []string{"INFO holdfast: breaker opened kit=shop breaker=db from=closed to=open reason=consecutive"}, logged(t, &buf))
		for range 100 {
			require.Error(t, do(t.Context(), k, read, nil))
		}
		require.Empty(t, logged(t, &buf))
		time.Sleep(time.Second)
		require.Error(t, do(t.Context(), k, read, errDown))
		require.Equal(t, []string{
			"INFO holdfast: breaker half-open kit=shop breaker=db from=open to=half_open reason=cooldown_over",
			"WARN holdfast: probe failed kit=shop breaker=db outcome=failed",
			"INFO holdfast: breaker opened kit=shop breaker=db from=half_open to=open reason=probe_failed",
		}, logged(t, &buf))
		for _, b := range k.Breakers() {
			b.ForceOpen("database moves, ticket 12")
			b.Reset()
		}
		require.Equal(t, []string{
			"INFO holdfast: breaker forced open kit=shop breaker=db from=open to=forced_open reason=forced note=database moves, ticket 12",
			"INFO holdfast: breaker closed kit=shop breaker=db from=forced_open to=closed reason=reset",
		}, logged(t, &buf))

		// H4: no secret, though somebody has named the target so.
		open(t, k, call.Info{Target: "https://user:secret@api.example.com/?token=secret"})
		text := buf.String()
		require.Contains(t, text, "https://api.example.com/")
		require.NotContains(t, text, "secret")
		buf.Reset()
		stop()
		open(t, k, call.Info{Target: "other"})
		require.Empty(t, buf.String())
	})
}
