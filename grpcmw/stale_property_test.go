package grpcmw_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/wrapperspb"
	"pgregory.net/rapid"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/breaker"
	"github.com/holdfast-go/holdfast/call"
	"github.com/holdfast-go/holdfast/fallback"
	"github.com/holdfast-go/holdfast/fallback/memory"
	"github.com/holdfast-go/holdfast/grpcmw"
	"github.com/holdfast-go/holdfast/retry"
)

// scene is a dependency that goes down and comes back, and interceptors with a
// cache so small that it evicts.
type scene struct {
	unary   grpc.UnaryClientInterceptor
	version int
	down    bool
	hits    int // that it has answered well
	reads   map[string]read
}

// read is what the dependency has last given to a user for a request.
type read struct {
	text string
	at   time.Time
}

const staleFor = 30 * time.Second

func newScene(t *rapid.T) *scene {
	s := &scene{reads: map[string]read{}}
	store, err := memory.New(3000)
	require.NoError(t, err)
	kit, err := holdfast.New(holdfast.Config{
		Default: holdfast.Policy{
			Retry:   retry.Off(),
			Breaker: &breaker.Config{Consecutive: 3, Cooldown: 5 * time.Second, Jitter: breaker.NoJitter, ProbeSuccesses: 1},
			Fallback: &fallback.Policy{Stale: &fallback.Stale{
				Store: store, MaxStale: staleFor,
				Identity: func(_ context.Context, r fallback.Request) string { return r.Get("authorization") },
			}},
		},
		Methods: map[string]holdfast.Policy{readMethod: {Safety: call.ReadOnly}},
	})
	require.NoError(t, err)
	s.unary = grpcmw.UnaryClientInterceptor(kit)
	return s
}

// answer is the dependency: its reply names the method, the request, the user and
// the version.
func (s *scene) answer(ctx context.Context, method string, req, reply any, _ *grpc.ClientConn, opts ...grpc.CallOption) error {
	for _, opt := range opts { // without which nobody knows what came of it
		if o, ok := opt.(grpc.OnFinishCallOption); ok {
			defer o.OnFinish(nil)
		}
	}
	if s.down {
		return status.Error(codes.Unavailable, "down")
	}
	s.hits++
	md, _ := metadata.FromOutgoingContext(ctx)
	reply.(*wrapperspb.StringValue).Value = fmt.Sprintf("%s %s %s v%d",
		method, req.(*wrapperspb.StringValue).Value, strings.Join(md["authorization"], ""), s.version)
	return nil
}

// F1, F3: no write is answered from the cache, and no read gets what was not given
// to the same user for the same request, or is older than the policy says; under
// whatever comes of outage, recovery, filling and eviction.
func TestF1_NoWriteIsAnsweredAndNoReadCrosses(t *testing.T) {
	var stale, missed int
	rapid.Check(t, func(t *rapid.T) {
		rapid.SyncTest(t, func(t *rapid.T) {
			s := newScene(t)
			t.Repeat(map[string]func(*rapid.T){
				"": func(t *rapid.T) { // after each step
					switch s.call(t, readMethod) {
					case "stale":
						stale++
					case "missed":
						missed++
					}
				},
				"write":       func(t *rapid.T) { require.NotEqual(t, "stale", s.call(t, writeMethod)) },
				"go down":     func(*rapid.T) { s.down = true },
				"come back":   func(*rapid.T) { s.down = false },
				"time":        func(t *rapid.T) { time.Sleep(time.Duration(rapid.IntRange(0, 20).Draw(t, "seconds")) * time.Second) },
				"new content": func(*rapid.T) { s.version++ },
			})
		})
	})
	t.Logf("%d reads answered from the cache, %d not answered", stale, missed)
	require.Positive(t, stale, "the cache was used")
	require.Positive(t, missed, "and had nothing")
}

func (s *scene) call(t *rapid.T, method string) string {
	text := rapid.SampledFrom([]string{"a", "b", "c", "d"}).Draw(t, "request")
	user := rapid.SampledFrom([]string{"", "A", "B", "AB"}).Draw(t, "user")
	ctx := context.Background()
	if user != "" {
		ctx = metadata.AppendToOutgoingContext(ctx, "authorization", user)
	}
	who := fmt.Sprintf("%s %s %s", method, text, user)
	var header metadata.MD
	reply, before := new(wrapperspb.StringValue), s.hits
	err := s.unary(ctx, method, wrapperspb.String(text), reply, nil, s.answer, grpc.Header(&header))
	switch {
	case err != nil:
		require.Equal(t, codes.Unavailable, status.Code(err))
		require.Empty(t, reply.Value)
		require.Empty(t, header)
		return "missed"
	case s.hits > before:
		require.Empty(t, header["cache-status"])
		s.reads[who] = read{reply.Value, time.Now()}
		return "fresh"
	}
	last, ok := s.reads[who]
	require.True(t, ok && user != "", "%q was never given to %q", reply.Value, who)
	require.Equal(t, last.text, reply.Value)
	require.Less(t, time.Since(last.at), staleFor)
	require.Equal(t, []string{fmt.Sprint(int(time.Since(last.at) / time.Second))}, header["age"])
	return "stale"
}

// What a cache costs the calls of methods without one: nothing, though others of
// the kit have it; and a write of a policy with one has none.
func TestACacheCostsOthersNothing(t *testing.T) {
	store, err := memory.New(1 << 20)
	require.NoError(t, err)
	keeps := &fallback.Policy{Stale: &fallback.Stale{Store: store, Identity: fallback.SharedByAll}}
	allocations := func(c holdfast.Config) float64 {
		kit, err := holdfast.New(c)
		require.NoError(t, err)
		unary := grpcmw.UnaryClientInterceptor(kit)
		stub := func(context.Context, string, any, any, *grpc.ClientConn, ...grpc.CallOption) error { return nil }
		req, reply := wrapperspb.String("x"), new(wrapperspb.StringValue)
		return testing.AllocsPerRun(200, func() { _ = unary(context.Background(), writeMethod, req, reply, nil, stub) })
	}
	without := allocations(holdfast.Config{})
	require.Equal(t, without, allocations(holdfast.Config{Default: holdfast.Policy{Fallback: keeps}}))
	require.Equal(t, without, allocations(holdfast.Config{Methods: map[string]holdfast.Policy{readMethod: {Safety: call.ReadOnly, Fallback: keeps}}}))
	require.Zero(t, store.Len())
}
