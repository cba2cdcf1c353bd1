package httpmw_test

import (
	"context"
	"net"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/net/http2"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/call"
	"github.com/holdfast-go/holdfast/httpmw"
	"github.com/holdfast-go/holdfast/internal/memnet"
	"github.com/holdfast-go/holdfast/internal/memnet/memframes"
	"github.com/holdfast-go/holdfast/retry"
	"github.com/holdfast-go/holdfast/timeout"
)

// H6: a server that takes each new connection from a request again would have it
// repeated by net/http for ever. Where the kit looks at the connections, five are
// enough.
func TestH6_ARequestThatIsSentAwayFromEachConnectionEndsAfterFive(t *testing.T) {
	for name, deadline := range map[string]time.Duration{"no deadline": 0, "the caller's": time.Hour} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				_, transport := playFrames(t, memframes.Step{Answer: memframes.GoAway(http2.ErrCodeNo)})
				dial, n := transport.DialContext, 0
				transport.DialContext = func(ctx context.Context, network, addr string) (net.Conn, error) {
					n++
					if n > 50 {
						t.Error("it goes on")
						<-ctx.Done()
					}
					return dial(ctx, network, addr)
				}
				var ended []call.Result
				p := quick()
				p.Timeout = timeout.Off()
				k, err := holdfast.New(holdfast.Config{Default: p, Hooks: holdfast.Hooks{Tried: func(_ context.Context, tr holdfast.Tried) { ended = append(ended, tr.Result) }}})
				require.NoError(t, err)
				ctx := t.Context()
				if deadline > 0 {
					var cancel context.CancelFunc
					ctx, cancel = context.WithTimeout(ctx, deadline)
					defer cancel()
				}
				req := newRequest(t, "POST", "http://"+memnet.Host+"/", strings.NewReader("x")).WithContext(ctx)
				_, err = httpmw.NewTransport(transport, k).RoundTrip(req)
				require.ErrorContains(t, err, "sent away from each of 5 new connections")
				require.NotErrorIs(t, err, context.Canceled)
				require.LessOrEqual(t, n, 6)
				require.GreaterOrEqual(t, n, 5)
				require.Len(t, ended, 1, "what the servers did with it is unknown")
				require.Equal(t, call.Unavailable, ended[0].Class)
				require.False(t, ended[0].NotSent)
			})
		})
	}
}

// A server that refuses a stream says that it has not processed it. net/http repeats
// it six times by itself; when it gives up, the kit may go on, whatever the method.
func TestD069_ARefusedStreamIsRepeatedWhateverItsMethod(t *testing.T) {
	for _, method := range []string{http.MethodPut, http.MethodPost} {
		t.Run(method, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var steps []memframes.Step
				for range 8 {
					steps = append(steps, memframes.Step{Answer: memframes.Reset(http2.ErrCodeRefusedStream)})
				}
				s, transport := playFrames(t, append(steps, okLate)...)
				p := quick()
				p.Timeout = timeout.Off()
				p.Retry = &retry.Policy{MaxAttempts: 3}
				k := newKit(t, p)
				resp, err := httpmw.NewTransport(transport, k).RoundTrip(newRequest(t, method, "http://"+memnet.Host+"/", strings.NewReader("x")))
				require.NoError(t, err)
				require.NoError(t, resp.Body.Close())
				bodies := s.Bodies()
				require.Len(t, bodies, 9)
				require.Equal(t, "x", bodies[8])
			})
		})
	}
}
