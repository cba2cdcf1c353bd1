package retryable_test

import (
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-go/holdfast/httpmw/retryable"
	"github.com/holdfast-go/holdfast/internal/memnet"
	"github.com/holdfast-go/holdfast/retry"
)

// R10: go-retryablehttp reads an io.ReadSeeker for every attempt. A call with such
// a body is not hedged, for two attempts would tear it between them.
func TestR10_ABodyThatAttemptsShareIsNotHedged(t *testing.T) {
	big := strings.Repeat("0123456789", 200_000)
	overEach(t, func(t *testing.T, proto memnet.Proto) {
		got := make(chan string, 3)
		var hits atomic.Int32
		server := memnet.Start(t, proto, http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
			hits.Add(1)
			var all strings.Builder
			for buf := make([]byte, 10_000); ; time.Sleep(time.Millisecond) {
				n, err := r.Body.Read(buf)
				all.Write(buf[:n])
				if err == io.EOF {
					got <- all.String()
				}
				if err != nil {
					return
				}
			}
		}))
		p := patient()
		p.Timeout = nil
		p.Retry.Hedge, p.Retry.Budget = retry.Hedge{Delay: 10 * time.Millisecond}, retry.NoBudget()
		client := vendor(server.Transport)
		require.NoError(t, retryable.Install(client, kit(t, p)))
		s := &setup{server, client, nil}
		code, _, err := s.do(t, s.request(t, http.MethodPut, "/", big))
		require.NoError(t, err)
		require.Equal(t, 200, code)
		require.True(t, <-got == big)
		require.EqualValues(t, 1, hits.Load())
	})
}
