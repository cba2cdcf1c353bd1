package httpmw_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/httpmw"
	"github.com/holdfast-go/holdfast/internal/memnet"
	"github.com/holdfast-go/holdfast/retry"
	"github.com/holdfast-go/holdfast/timeout"
)

// T4: the caller's deadline may be nearer than the limit on the first message. An
// answer that breaks off before it is repeated all the same.
func TestT4_AFirstMessageIsAwaitedWhateverTheCallersDeadline(t *testing.T) {
	for _, deadline := range []time.Duration{0, time.Hour, 20 * time.Second, 2 * time.Second} {
		t.Run(deadline.String(), func(t *testing.T) {
			overEach(t, func(t *testing.T, proto memnet.Proto) {
				p := quick()
				p.Timeout = &timeout.Limits{FirstMessage: 5 * time.Second}
				s := start(t, proto, p, answers(events(10*time.Millisecond, "cut"), status(200, "good")))
				ctx := t.Context()
				if deadline > 0 {
					var cancel context.CancelFunc
					ctx, cancel = context.WithTimeout(ctx, deadline)
					defer cancel()
				}
				_, body, err := s.do(t, s.request(t, ctx, "GET", "/", ""))
				require.NoError(t, err)
				require.Equal(t, "good", body)
				require.Len(t, s.script.hits(), 2)
			})
		})
	}
}

// F6, T4: so does one on several upstreams move on.
func TestF6_AFirstMessageIsAwaitedWhateverTheCallersDeadline(t *testing.T) {
	for _, deadline := range []time.Duration{time.Hour, 20 * time.Second} {
		t.Run(deadline.String(), func(t *testing.T) {
			overBubbles(t, func(t *testing.T, l link) {
				p := quick()
				p.Retry = &retry.Policy{MaxAttempts: 1}
				p.Timeout = &timeout.Limits{FirstMessage: 30 * time.Second}
				n := network(t, l, map[string]*script{"a": answers(events(10*time.Millisecond, "cut")), "b": answers(events(10*time.Millisecond, "hello"))})
				n.over(t, holdfast.Config{Default: p}, []httpmw.Upstream{{URL: l.host("a"), Name: "a"}, {URL: l.host("b"), Name: "b"}}, httpmw.WithFirstMessage(httpmw.FirstEvent))
				ctx, cancel := context.WithTimeout(t.Context(), deadline)
				defer cancel()
				_, text, err := n.do(ctx, "GET", l.host("a")+"/", "")
				require.NoError(t, err)
				require.Equal(t, "data: hello\n\n", text)
			})
		})
	}
}
