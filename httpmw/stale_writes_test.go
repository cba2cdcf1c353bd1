package httpmw_test

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-go/holdfast/internal/memnet"
)

// F3 (RFC 9111, section 4.4): a write removes the copy whatever conditions it has, and
// whatever it says of the keeping of its own answer.
func TestF3_AWriteRemovesTheCopyWhateverItsConditions(t *testing.T) {
	for _, header := range [][]string{
		nil, {"If-Match", `"1"`}, {"If-Unmodified-Since", "Mon, 02 Jan 2006 15:04:05 GMT"}, {"Range", "bytes=0-1"},
		{"Cache-Control", "no-store"}, {"Cache-Control", `broken="`}, {"Pragma", "no-cache"},
	} {
		t.Run(fmt.Sprint(header), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var value atomic.Value
				value.Store("old")
				o := staleOrigin(t, memnet.HTTP1, forAll(), func(w http.ResponseWriter, r *http.Request) {
					if r.Method == http.MethodPut {
						b, _ := io.ReadAll(r.Body)
						value.Store(string(b))
						w.WriteHeader(http.StatusNoContent)
						return
					}
					_, _ = io.WriteString(w, value.Load().(string))
				})
				require.Equal(t, "old", o.send(t, "GET", "/x", "").body)
				require.Equal(t, 204, o.send(t, "PUT", "/x", "new", header...).code)
				o.down.Store(true)
				a := o.send(t, "GET", "/x", "")
				require.False(t, a.stale(), "%q is of before the write", a.body)
			})
		})
	}
}

// F3: an answer that was asked for before a write, and comes whole after it, does not
// bring back what the write has removed; one that is asked for afterwards is kept.
func TestF3_AnAnswerUnderWayDuringAWriteIsNotKept(t *testing.T) {
	for _, vary := range []string{"", "Accept-Language"} {
		t.Run("Vary "+vary, func(t *testing.T) {
			overEach(t, func(t *testing.T, proto memnet.Proto) {
				var slow atomic.Bool
				slow.Store(true)
				o := staleOrigin(t, proto, forAll(), func(w http.ResponseWriter, r *http.Request) {
					if r.Method == http.MethodPut {
						w.WriteHeader(http.StatusNoContent)
						return
					}
					if vary != "" {
						w.Header().Set("Vary", vary)
					}
					if !slow.Load() {
						_, _ = io.WriteString(w, "new")
						return
					}
					_, _ = io.WriteString(w, "old ")
					w.(http.Flusher).Flush()
					time.Sleep(50 * time.Millisecond)
					_, _ = io.WriteString(w, "end")
				})
				under := make(chan answer)
				go func() { under <- o.send(t, "GET", "/x", "") }()
				time.Sleep(20 * time.Millisecond)
				require.Equal(t, 204, o.send(t, "PUT", "/x", "new").code)
				slow.Store(false)
				require.Equal(t, "new", o.send(t, "GET", "/x", "").body)
				require.Equal(t, "old end", (<-under).body)
				o.down.Store(true)
				a := o.send(t, "GET", "/x", "")
				require.True(t, a.stale())
				require.Equal(t, "new", a.body)

				o.down.Store(false) // and once more with nothing new
				slow.Store(true)
				go func() { under <- o.send(t, "GET", "/x", "") }()
				time.Sleep(20 * time.Millisecond)
				require.Equal(t, 204, o.send(t, "PUT", "/x", strings.Repeat("n", 3)).code)
				<-under
				o.down.Store(true)
				require.False(t, o.send(t, "GET", "/x", "").stale())
			})
		})
	}
}
