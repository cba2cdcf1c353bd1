package httpmw_test

import (
	"fmt"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-go/holdfast/call"
	"github.com/holdfast-go/holdfast/fallback"
	"github.com/holdfast-go/holdfast/internal/memnet"
)

// D068, F4: an answer's age is told, and one that is too old is not given.
func TestD068_TheAgeIsToldAndHasAnEnd(t *testing.T) {
	overEach(t, func(t *testing.T, proto memnet.Proto) {
		st := forAll()
		st.Fresh, st.MaxStale = 10*time.Second, time.Minute
		o := staleOrigin(t, proto, st, parrot)
		o.send(t, "GET", "/", "")
		o.down.Store(true)
		begin := time.Now()
		for _, c := range []struct {
			after       time.Duration
			age, status string
		}{
			{0, "0", "holdfast; hit; ttl=10; detail=unavailable"},
			{10 * time.Second, "10", "holdfast; hit; ttl=0; detail=unavailable"},
			{30 * time.Second, "30", "holdfast; hit; ttl=-20; detail=unavailable"},
			{60*time.Second - 1, "59", "holdfast; hit; ttl=-49; detail=unavailable"},
		} {
			time.Sleep(time.Until(begin.Add(c.after)))
			got := o.send(t, "GET", "/", "")
			require.Equal(t, 200, got.code, c.after)
			require.Equal(t, c.age, got.header.Get("Age"))
			require.Equal(t, c.status, got.header.Get("Cache-Status"))
			last := o.told[len(o.told)-1]
			require.Equal(t, fallback.KindStale, last.Kind)
			require.Equal(t, c.after, last.Age)
			require.Equal(t, call.Unavailable, last.After.Class)
			require.NoError(t, last.Err)
			require.Equal(t, "GET", last.Info.Method)
		}
		told := len(o.told)
		time.Sleep(time.Nanosecond)
		require.Equal(t, 503, o.send(t, "GET", "/", "").code)
		require.Len(t, o.told, told, "there was nothing to answer with")
	})
}

// The terms of a stored answer are the narrower of the policy's and its own.
func TestTheAnswerSaysHowLong(t *testing.T) {
	for cc, c := range map[string]struct{ good, bad time.Duration }{
		"max-age=20, must-revalidate":           {19 * time.Second, 20 * time.Second},
		"s-maxage=30, max-age=10":               {29 * time.Second, 30 * time.Second},
		"max-age=20, stale-if-error=15":         {34 * time.Second, 35 * time.Second},
		"max-age=5":                             {59 * time.Second, 60 * time.Second},
		"max-age=9999, stale-if-error=9999":     {59 * time.Second, 60 * time.Second},
		"public, stale-while-revalidate=5, x=1": {59 * time.Second, 60 * time.Second},
	} {
		synctest.Test(t, func(t *testing.T) {
			st := forAll()
			st.MaxStale = time.Minute
			o := staleOrigin(t, memnet.HTTP1, st, func(w http.ResponseWriter, r *http.Request) {
				w.Header().Set("Cache-Control", cc)
				fmt.Fprint(w, "x")
			})
			o.send(t, "GET", "/", "")
			o.down.Store(true)
			time.Sleep(c.good)
			require.True(t, o.send(t, "GET", "/", "").stale(), cc)
			time.Sleep(c.bad - c.good)
			require.Equal(t, 503, o.send(t, "GET", "/", "").code, cc)
		})
	}
	synctest.Test(t, func(t *testing.T) { // Expires, Age and the time the answer took
		o := staleOrigin(t, memnet.HTTP1, forAll(), func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Cache-Control", "must-revalidate")
			w.Header().Set("Expires", time.Now().Add(40*time.Second).UTC().Format(http.TimeFormat))
			w.Header().Set("Age", "7")
			w.(http.Flusher).Flush()
			time.Sleep(3 * time.Second)
			fmt.Fprint(w, "x")
		})
		o.send(t, "GET", "/", "")
		o.down.Store(true)
		got := o.send(t, "GET", "/", "")
		require.Equal(t, "10", got.header.Get("Age"))
		require.Equal(t, "holdfast; hit; ttl=30; detail=unavailable", got.header.Get("Cache-Status"))
		time.Sleep(31 * time.Second)
		require.Equal(t, 503, o.send(t, "GET", "/", "").code)
	})
}
