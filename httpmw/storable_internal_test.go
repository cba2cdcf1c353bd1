package httpmw

import (
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-go/holdfast/fallback"
)

// F3, F4: how long an answer is fresh is what it says for who has it, and what would be
// too old on its arrival is not stored.
func TestF3_TheTermsOfAnAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		in := func(d time.Duration) string { return time.Now().Add(d).UTC().Format(http.TimeFormat) }
		s := &fallback.Stale{Identity: fallback.SharedByAll, Fresh: 5 * time.Second, MaxStale: time.Minute}
		for name, c := range map[string]struct {
			header http.Header
			shared bool
			asked  time.Duration // ago
			fresh  time.Duration
			stored bool
		}{
			"it says nothing":                 {nil, true, 0, 5 * time.Second, true},
			"max-age":                         {http.Header{"Cache-Control": {"max-age=20"}}, true, 0, 20 * time.Second, true},
			"s-maxage, everybody's":           {http.Header{"Cache-Control": {"max-age=20, s-maxage=7"}}, true, 0, 7 * time.Second, true},
			"s-maxage, a user's":              {http.Header{"Cache-Control": {"max-age=20, s-maxage=7"}}, false, 0, 20 * time.Second, true},
			"max-age before Expires":          {http.Header{"Cache-Control": {"max-age=20"}, "Expires": {in(30 * time.Second)}}, true, 0, 20 * time.Second, true},
			"Expires":                         {http.Header{"Expires": {in(30 * time.Second)}}, true, 0, 30 * time.Second, true},
			"Expires by the server's clock":   {http.Header{"Date": {in(-time.Hour)}, "Expires": {in(30*time.Second - time.Hour)}}, true, 0, 30 * time.Second, true},
			"Expires in the past":             {http.Header{"Expires": {in(-time.Second)}}, true, 0, 0, true},
			"Expires without a date":          {http.Header{"Expires": {"0"}}, true, 0, 0, true},
			"not too old with the time asked": {http.Header{"Age": {"50"}}, true, 9 * time.Second, 5 * time.Second, true},
			"too old with the time asked":     {http.Header{"Age": {"50"}}, true, 10 * time.Second, 0, false},
		} {
			e, ok := terms(&http.Response{StatusCode: http.StatusOK, Header: c.header}, s, c.shared, c.asked)
			require.Equal(t, c.stored, ok, name)
			if ok {
				require.Equal(t, c.fresh, e.Fresh, name)
			}
		}
	})
}
