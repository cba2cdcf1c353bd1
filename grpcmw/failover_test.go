package grpcmw_test

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/breaker"
	"github.com/holdfast-go/holdfast/bulkhead"
	"github.com/holdfast-go/holdfast/call"
	"github.com/holdfast-go/holdfast/grpcmw"
	"github.com/holdfast-go/holdfast/outlier"
	"github.com/holdfast-go/holdfast/timeout"
)

// brittle is a policy of reads without retries whose breakers open at one failure.
func brittle(p *holdfast.Policy) {
	readOnly(p)
	oneAttempt(p)
	p.Breaker = &breaker.Config{Consecutive: 1, Cooldown: 10 * time.Second, Jitter: breaker.NoJitter, ProbeSuccesses: 1, ProbeTimeout: 200 * time.Millisecond}
}

// over puts a failover over servers, named a, b, c.
func over(t *testing.T, k *holdfast.Kit, servers ...*script) *grpcmw.FailoverConn {
	t.Helper()
	var ups []grpcmw.Upstream
	for i, s := range servers {
		ups = append(ups, grpcmw.Upstream{Conn: s.Dial(), Name: string(rune('a' + i))})
	}
	f, err := grpcmw.Failover(k, ups)
	require.NoError(t, err)
	return f
}

func hitsOf(servers ...*script) (hits []int) {
	for _, s := range servers {
		hits = append(hits, s.hitCount())
	}
	return hits
}

func ask(ctx context.Context, f *grpcmw.FailoverConn, opts ...grpc.CallOption) (text, upstream string, err error) {
	text, err = invoke(ctx, f, append(opts, grpcmw.ReportUpstream(&upstream))...)
	return text, upstream, err
}

func breakerOf(t *testing.T, k *holdfast.Kit, name string) *breaker.Breaker {
	t.Helper()
	b := maps.Collect(k.Breakers())[name]
	require.NotNil(t, b, "no breaker %q", name)
	return b
}

// A generated client takes it for a connection, for unary RPCs and streams.
func TestFailoverIsAConnection(t *testing.T) {
	bubble(t, func(t *testing.T) {
		a, b := play(t, fail(codes.Unavailable)), play(t, func(s grpc.ServerStream) error {
			if err := s.RecvMsg(new(healthpb.HealthCheckRequest)); err != nil {
				return err
			}
			return s.SendMsg(&healthpb.HealthCheckResponse{Status: healthpb.HealthCheckResponse_SERVING})
		})
		client := healthpb.NewHealthClient(over(t, newKit(t, with(readOnly)), a, b))
		reply, err := client.Check(t.Context(), &healthpb.HealthCheckRequest{})
		require.NoError(t, err)
		require.Equal(t, healthpb.HealthCheckResponse_SERVING, reply.GetStatus())
		watch, err := client.Watch(t.Context(), &healthpb.HealthCheckRequest{})
		require.NoError(t, err)
		reply, err = watch.Recv()
		require.NoError(t, err)
		require.Equal(t, healthpb.HealthCheckResponse_SERVING, reply.GetStatus())
		_, err = watch.Recv()
		require.Error(t, err)
		require.Equal(t, []int{2, 2}, hitsOf(a, b))
	})
}

// D065, T4, B14: a channel that takes the stream and stays silent costs one limit on
// the first message, and is skipped for all its models from then on.
func TestD065_ASilentChannelIsSkippedForAllItsModels(t *testing.T) {
	bubble(t, func(t *testing.T) {
		a, b := play(t, silent), play(t, messages(3, time.Millisecond, nil))
		k := newKit(t, with(func(p *holdfast.Policy) {
			brittle(p)
			p.Breaker.Scope = breaker.TwoLevel
			p.Timeout = &timeout.Limits{FirstMessage: 100 * time.Millisecond}
		}))
		toA := a.Dial()
		f, err := grpcmw.Failover(k, []grpcmw.Upstream{
			{Conn: toA, Name: "A", Resource: "m1"}, {Conn: toA, Name: "A", Resource: "m2"}, {Conn: b.Dial(), Name: "B", Resource: "m1"},
		})
		require.NoError(t, err)
		for i, want := range []time.Duration{101 * time.Millisecond, time.Millisecond} {
			begin, upstream := time.Now(), ""
			stream, err := open(t.Context(), f, serverStream, grpcmw.ReportUpstream(&upstream))
			require.NoError(t, err)
			first := begin
			texts, err := readAllNoting(stream, &first)
			require.NoError(t, err)
			require.Equal(t, want, first.Sub(begin), i)
			require.Equal(t, "abc", strings.Join(texts, ""))
			require.Equal(t, "B|m1", upstream)
			require.Equal(t, []int{1, i + 1}, hitsOf(a, b), "A is hit once, and not at all by the next call")
		}
		require.Equal(t, 1, a.canceled)
	})
}

// D066, T4: the limit on the first message begins with the attempt, dial included, and
// holds for every hop and every attempt; what has lost is cancelled.
func TestD066_TheFirstMessagesLimitHoldsForEachHop(t *testing.T) {
	bubble(t, func(t *testing.T) {
		a, b := play(t, silent), play(t, silent)
		a.Wire.Hang(true)
		time.AfterFunc(80*time.Millisecond, func() { a.Wire.Hang(false) })
		f := over(t, newKit(t, with(func(p *holdfast.Policy) {
			readOnly(p)
			p.Retry.MaxAttempts = 2
			p.Breaker = breaker.Off()
			p.Timeout = &timeout.Limits{FirstMessage: 100 * time.Millisecond}
		})), a, b)
		begin := time.Now()
		stream, err := open(t.Context(), f, serverStream)
		require.NoError(t, err)
		_, err = readAll(stream)
		require.ErrorIs(t, err, timeout.ErrExceeded)
		require.Equal(t, 410*time.Millisecond, time.Since(begin), "two rounds of two limits, and the back-off")
		time.Sleep(time.Millisecond)
		require.Equal(t, []int{2, 2}, hitsOf(a, b))
		require.Equal(t, []int{2, 2}, []int{a.canceled, b.canceled})
	})
}

// D067: with all channels open one forced try goes to the one with the least cooldown
// left; one that is forced open is never asked.
func TestD067_OneForcedTryWhenAllAreOpen(t *testing.T) {
	bubble(t, func(t *testing.T) {
		a, b, c := play(t, fail(codes.Unavailable), say("A is back")), play(t, fail(codes.Unavailable)), play(t, say("C"))
		k := newKit(t, with(brittle))
		f := over(t, k, a, b, c)
		text, _, err := ask(t.Context(), f)
		require.NoError(t, err)
		require.Equal(t, "C", text)
		breakerOf(t, k, "c").ForceOpen("maintenance")
		text, upstream, err := ask(t.Context(), f)
		require.NoError(t, err)
		require.Equal(t, "A is back", text)
		require.Equal(t, "a", upstream)
		require.Equal(t, breaker.Closed, breakerOf(t, k, "a").State())

		time.Sleep(time.Second)
		breakerOf(t, k, "a").ForceOpen("maintenance")
		_, upstream, err = ask(t.Context(), f)
		require.Equal(t, codes.Unavailable, status.Code(err))
		require.NotErrorIs(t, err, breaker.ErrOpen, "the caller gets the failure")
		require.Equal(t, "b", upstream)
		_, _, err = ask(t.Context(), f)
		require.ErrorIs(t, err, breaker.ErrOpen, "one a second")
		require.Equal(t, []int{2, 2, 1}, hitsOf(a, b, c))
	})
}

// A forced try finds a server whose connection waits for its next dial (G5).
func TestF6_AForcedTryDialsAtOnce(t *testing.T) {
	bubble(t, func(t *testing.T) {
		a, b := play(t, say("A")), play(t, say("B"))
		a.Wire.Refuse(true)
		b.Wire.Refuse(true)
		f := over(t, newKit(t, with(brittle)), a, b)
		for range 20 {
			_, _, err := ask(t.Context(), f)
			require.Error(t, err)
			time.Sleep(time.Second)
		}
		a.Wire.Refuse(false)
		b.Wire.Refuse(false)
		time.Sleep(time.Second)
		_, _, err := ask(t.Context(), f)
		require.NoError(t, err)
	})
}

// F6, R2: an RPC that nothing says may be repeated moves on only if nothing was sent;
// what is refused by the dial was not.
func TestF6_AnUndeclaredCallMovesOnOnlyIfUnsent(t *testing.T) {
	bubble(t, func(t *testing.T) {
		a, b := play(t, fail(codes.Unavailable)), play(t, say("B"))
		f := over(t, newKit(t, policy()), a, b)
		_, _, err := ask(t.Context(), f)
		require.Equal(t, codes.Unavailable, status.Code(err))
		require.Equal(t, []int{1, 0}, hitsOf(a, b))

		keyed := metadata.AppendToOutgoingContext(t.Context(), "idempotency-key", "7")
		text, _, err := ask(keyed, f)
		require.NoError(t, err)
		require.Equal(t, "B", text)
		require.Equal(t, []string{"7"}, b.incoming[0].Get("idempotency-key"))

		dead := play(t, say("never"))
		dead.Wire.Refuse(true)
		f = over(t, newKit(t, policy()), dead, b)
		text, upstream, err := ask(t.Context(), f)
		require.NoError(t, err)
		require.Equal(t, "B", text)
		require.Equal(t, "b", upstream)
		require.Equal(t, []int{0, 2}, hitsOf(dead, b))
	})
}

// R9: one key for all hops and rounds. The attempt's number counts them all.
func TestR9_EachHopSendsTheSameKey(t *testing.T) {
	bubble(t, func(t *testing.T) {
		a, b := play(t, fail(codes.Unavailable)), play(t, fail(codes.Unavailable), say("B"))
		f := over(t, newKit(t, with(func(p *holdfast.Policy) { p.Retry.IdempotencyKey = true })), a, b)
		text, _, err := ask(t.Context(), f)
		require.NoError(t, err)
		require.Equal(t, "B", text)
		keys := map[string]bool{}
		var numbers []string
		for _, md := range slices.Concat(a.incoming, b.incoming) {
			require.Len(t, md.Get("idempotency-key"), 1)
			keys[md.Get("idempotency-key")[0]] = true
			numbers = append(numbers, strings.Join(md.Get("grpc-previous-rpc-attempts"), ","))
		}
		require.Len(t, keys, 1)
		require.Equal(t, []string{"", "2", "1", "3"}, numbers)
	})
}

// A stream moves on only while nothing was delivered: D076, D079, D080 with several
// upstreams.
func TestD079_AStreamMovesOnOnlyBeforeItsFirstMessage(t *testing.T) {
	bubble(t, func(t *testing.T) {
		down := status.Error(codes.Unavailable, "cut")
		a, b := play(t, messages(0, 0, down), messages(2, 0, down), silent), play(t, messages(3, 0, nil))
		var seen verdicts
		k := newKit(t, with(func(p *holdfast.Policy) { readOnly(p); oneAttempt(p); seen.note(p) }))
		f := over(t, k, a, b)
		upstream := ""
		stream, err := open(t.Context(), f, serverStream, grpcmw.ReportUpstream(&upstream))
		require.NoError(t, err)
		texts, err := readAll(stream)
		require.NoError(t, err)
		require.Equal(t, "abc", strings.Join(texts, ""))
		require.Equal(t, "b", upstream)
		require.Equal(t, []call.Class{call.Unavailable, call.OK}, seen.take())

		stream, err = open(t.Context(), f, serverStream, grpcmw.ReportUpstream(&upstream))
		require.NoError(t, err)
		texts, err = readAll(stream)
		require.Equal(t, codes.Unavailable, status.Code(err))
		require.Equal(t, "ab", strings.Join(texts, ""))
		require.Equal(t, "a", upstream)
		require.Equal(t, []int{2, 1}, hitsOf(a, b))
		require.Equal(t, []call.Class{call.Unavailable}, seen.take())
		require.Equal(t, 2, breakerOf(t, k, "a").Counts().Failures)

		// A stream that the client sends on is settled by its first message.
		stream, err = open(t.Context(), f, bidiStream)
		require.NoError(t, err)
		require.NoError(t, stream.SendMsg(&healthpb.HealthCheckRequest{}))
		time.Sleep(time.Millisecond) // the server has it
		a.Wire.Reset()
		_, err = readAll(stream)
		require.Error(t, err)
		require.Equal(t, []int{3, 1}, hitsOf(a, b))
	})
}

// A refusal before anything was opened moves on as well: breaker and bulkhead.
func TestF6_AStreamPassesARefusalOver(t *testing.T) {
	bubble(t, func(t *testing.T) {
		a, b := play(t, silent), play(t, messages(3, 0, nil))
		k := newKit(t, with(func(p *holdfast.Policy) {
			readOnly(p)
			oneAttempt(p)
			p.Bulkhead = &bulkhead.Config{Limit: 1}
		}))
		f := over(t, k, a, b)
		ctx, cancel := context.WithCancel(t.Context())
		holding, err := open(ctx, f, serverStream)
		require.NoError(t, err)
		time.Sleep(time.Millisecond) // the server has it
		for range 2 {
			stream, err := open(t.Context(), f, serverStream)
			require.NoError(t, err)
			texts, err := readAll(stream)
			require.NoError(t, err)
			require.Equal(t, "abc", strings.Join(texts, ""))
			breakerOf(t, k, "a").ForceOpen("test") // and now the breaker
		}
		require.Equal(t, []int{1, 2}, hitsOf(a, b))
		require.Equal(t, 2, breakerOf(t, k, "b").Counts().Results, "each is booked")
		require.Zero(t, maps.Collect(k.Bulkheads())["b"].InUse())
		cancel()
		_, err = readAll(holding)
		require.Equal(t, codes.Canceled, status.Code(err))
	})
}

// Connections that have the kit's interceptors count once all the same.
func TestF6_TheKitsOwnConnectionsAreNotCountedTwice(t *testing.T) {
	bubble(t, func(t *testing.T) {
		a, b := play(t, fail(codes.Unavailable)), play(t, messages(1, 0, nil))
		k := newKit(t, with(func(p *holdfast.Policy) {
			readOnly(p)
			p.Retry.EvenNested = true
			p.Bulkhead = &bulkhead.Config{Limit: 1}
		}))
		f, err := grpcmw.Failover(k, []grpcmw.Upstream{{Conn: a.connect(t, k), Name: "a"}, {Conn: b.connect(t, k), Name: "b"}})
		require.NoError(t, err)
		_, _, err = ask(t.Context(), f)
		require.NoError(t, err)
		stream, err := open(t.Context(), f, serverStream)
		require.NoError(t, err)
		_, err = readAll(stream)
		require.NoError(t, err)
		require.Equal(t, []int{2, 2}, hitsOf(a, b))
		require.Equal(t, []string{"a", "b"}, slices.Sorted(maps.Keys(maps.Collect(k.Breakers()))), "no breaker of the connections' own")
	})
}

// F7, D102: the bad one of four connections is left out after its own minimum, and the
// service's breaker judges the others.
func TestD102_ABadInstanceIsLeftOut(t *testing.T) {
	bubble(t, func(t *testing.T) {
		bad, opened := play(t, fail(codes.Unavailable)), 0
		servers := []*script{play(t, say("ok")), play(t, say("ok")), bad, play(t, say("ok"))}
		k := newKit(t, with(func(p *holdfast.Policy) {
			readOnly(p)
			oneAttempt(p)
			p.Breaker = &breaker.Config{Window: breaker.Window{Calls: 20}, MinCalls: 10, FailureRate: 0.5, Jitter: breaker.NoJitter}
			p.Breaker.Hooks.Transition = func(breaker.Transition) { opened++ }
		}))
		up := grpcmw.Upstream{Name: "service", Outlier: outlier.Config{MinCalls: 5}}
		for _, s := range servers {
			up.Instances = append(up.Instances, s.Dial())
		}
		f, err := grpcmw.Failover(k, []grpcmw.Upstream{up})
		require.NoError(t, err)
		failed := 0
		for failed < 5 {
			if _, _, err := ask(t.Context(), f); err != nil {
				failed++
			}
		}
		require.Equal(t, 5, bad.hitCount())
		failed = 0
		for range 400 { // 20 s
			if _, _, err := ask(t.Context(), f); err != nil {
				failed++
			}
			time.Sleep(50 * time.Millisecond)
		}
		require.Less(t, failed, 8, "of 400: under 2 %%")
		require.GreaterOrEqual(t, failed, 1, "it has had a trial")
		require.Zero(t, opened, "the service's breaker was closed throughout")

		for _, s := range servers {
			s.mu.Lock()
			s.steps = []hit{fail(codes.Unavailable)}
			s.mu.Unlock()
		}
		for range 100 {
			_, _, err = ask(t.Context(), f)
		}
		require.ErrorIs(t, err, breaker.ErrOpen, "all are bad: the service is")
	})
}

// Each upstream may have metadata of its own; the caller's context does not change.
func TestPrepareSetsAnUpstreamsMetadata(t *testing.T) {
	bubble(t, func(t *testing.T) {
		a, b := play(t, fail(codes.Unavailable)), play(t, say("B"))
		token := func(text string) func(context.Context, string, int, metadata.MD) error {
			return func(_ context.Context, _ string, n int, md metadata.MD) error {
				md.Set("authorization", text)
				return nil
			}
		}
		order := ""
		f, err := grpcmw.Failover(newKit(t, with(readOnly)), []grpcmw.Upstream{
			{Conn: a.Dial(), Name: "a", Prepare: token("for a")}, {Conn: b.Dial(), Name: "b", Prepare: token("for b")},
		}, grpcmw.WithAttemptHook(func(_ context.Context, _ string, _ int, md metadata.MD) error {
			order += strings.Join(md.Get("authorization"), ",") + ";"
			return nil
		}))
		require.NoError(t, err)
		ctx := metadata.AppendToOutgoingContext(t.Context(), "authorization", "the caller's")
		_, _, err = ask(ctx, f)
		require.NoError(t, err)
		require.Equal(t, []string{"for a"}, a.incoming[0].Get("authorization"))
		require.Equal(t, []string{"for b"}, b.incoming[0].Get("authorization"))
		require.Equal(t, "for a;for b;", order, "the hook signs what is sent")
		md, _ := metadata.FromOutgoingContext(ctx)
		require.Equal(t, []string{"the caller's"}, md.Get("authorization"))

		f, err = grpcmw.Failover(newKit(t, with(readOnly)), []grpcmw.Upstream{
			{Conn: a.Dial(), Name: "a", Prepare: func(context.Context, string, int, metadata.MD) error { return errors.New("no token") }},
			{Conn: b.Dial(), Name: "b"},
		})
		require.NoError(t, err)
		_, _, err = ask(t.Context(), f)
		require.ErrorContains(t, err, "no token")
		require.Equal(t, []int{1, 1}, hitsOf(a, b))
	})
}

// What the caller's targets show is the last attempt's.
func TestFailoverFillsTheCallersTargets(t *testing.T) {
	bubble(t, func(t *testing.T) {
		from := func(name string, then hit) hit {
			return func(s grpc.ServerStream) error {
				s.SetTrailer(metadata.Pairs("from", name))
				return then(s)
			}
		}
		a, b := play(t, from("a", fail(codes.Unavailable))), play(t, from("b", say("B")))
		f := over(t, newKit(t, with(readOnly)), a, b)
		var trailer metadata.MD
		ends := 0
		_, _, err := ask(t.Context(), f, grpc.Trailer(&trailer), grpc.OnFinish(func(error) { ends++ }))
		require.NoError(t, err)
		require.Equal(t, []string{"b"}, trailer.Get("from"))
		require.Equal(t, 1, ends)
	})
}

func TestBadUpstreamsAreRefused(t *testing.T) {
	cc, err := grpc.NewClient("passthrough:///x", grpc.WithTransportCredentials(insecure.NewCredentials()))
	require.NoError(t, err)
	defer cc.Close()
	k := newKit(t, policy())
	var none *grpc.ClientConn
	for text, ups := range map[string][]grpcmw.Upstream{
		"Upstreams: there is none":                                        nil,
		"Upstreams[0].Conn: is missing":                                   {{Name: "a"}},
		"Upstreams[1].Conn: is missing":                                   {{Conn: cc}, {Conn: none}},
		"Upstreams[0].Conn: is set beside":                                {{Conn: cc, Instances: []grpc.ClientConnInterface{cc}}},
		"Upstreams[0].Instances[1]: is nil":                               {{Instances: []grpc.ClientConnInterface{cc, nil}}},
		"Upstreams[0].Instances[0]: is nil":                               {{Instances: []grpc.ClientConnInterface{none}}},
		"Upstreams[0].Name: is missing, and the connection has no target": {{Conn: struct{ grpc.ClientConnInterface }{}}},
		"Upstreams[0].Outlier.Time = -1s":                                 {{Conn: cc, Outlier: outlier.Config{Time: -time.Second}}},
		"Upstreams[1] = passthrough:///x: is the same":                    {{Conn: cc}, {Conn: cc}},
	} {
		_, err := grpcmw.Failover(k, ups)
		require.ErrorContains(t, err, text)
	}
	_, err = grpcmw.Failover(nil, []grpcmw.Upstream{{Conn: cc}})
	require.ErrorContains(t, err, "the kit is nil")
	_, err = grpcmw.Failover(k, []grpcmw.Upstream{{Conn: cc, Resource: "m1"}, {Conn: cc, Resource: "m2"}})
	require.NoError(t, err)
	//lint:ignore SA1012 A nil context is what is tested.
	require.Error(t, must(t, k, cc).Invoke(nil, method, nil, nil))
	e, err := k.Explain(method)
	require.NoError(t, err)
	require.Contains(t, e.String(), "failover: passthrough:///x|m1, passthrough:///x|m2; ")
}

func must(t *testing.T, k *holdfast.Kit, cc *grpc.ClientConn) *grpcmw.FailoverConn {
	t.Helper()
	f, err := grpcmw.Failover(k, []grpcmw.Upstream{{Conn: cc}})
	require.NoError(t, err)
	return f
}
