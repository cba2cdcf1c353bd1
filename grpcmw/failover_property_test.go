package grpcmw_test

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
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
	"github.com/holdfast-go/holdfast/bulkhead"
	"github.com/holdfast-go/holdfast/call"
	"github.com/holdfast-go/holdfast/grpcmw"
	"github.com/holdfast-go/holdfast/internal/memnet/memgrpc"
	"github.com/holdfast-go/holdfast/retry"
	"github.com/holdfast-go/holdfast/timeout"
)

// whims are what a server may do with an RPC.
var whims = []string{"silent", "late", "Unavailable", "NotFound", "ResourceExhausted", "ok", "ok", "half way"}

// whim answers as one of them would. Messages name the server.
func whim(what, name string) hit {
	send := func(texts ...string) hit {
		return func(s grpc.ServerStream) error {
			texts := texts
			if md, _ := metadata.FromIncomingContext(s.Context()); len(md.Get("streams")) == 0 {
				texts = texts[:1] // a unary RPC has one message
			}
			for _, text := range texts {
				if err := s.SendMsg(wrapperspb.String(name + text)); err != nil {
					return err
				}
			}
			return nil
		}
	}
	switch what {
	case "silent":
		return silent
	case "late":
		return after(150*time.Millisecond, send("1", "2"))
	case "ok":
		return send("1", "2", "3")
	case "half way":
		return func(s grpc.ServerStream) error {
			if err := send("1", "2")(s); err != nil {
				return err
			}
			return status.Error(codes.Unavailable, "half way")
		}
	}
	var code codes.Code
	if err := code.UnmarshalJSON([]byte(`"` + map[string]string{
		"Unavailable": "UNAVAILABLE", "NotFound": "NOT_FOUND", "ResourceExhausted": "RESOURCE_EXHAUSTED",
	}[what] + `"`)); err != nil {
		panic(err)
	}
	return fail(code)
}

// F6: whatever servers and callers do, no stream has two upstreams' messages, an RPC
// that may not be repeated reaches one server at most, each attempt is booked once,
// nobody asks one that is forced open, and nothing is held in the end.
func TestF6_WhateverTheUpstreamsDo(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) { rapid.SyncTest(t, checkFailover) })
}

func checkFailover(t *rapid.T) {
	n := rapid.IntRange(1, 4).Draw(t, "upstreams")
	opens := rapid.Bool().Draw(t, "breakers open")
	limits := &timeout.Limits{FirstMessage: 100 * time.Millisecond, Attempt: 200 * time.Millisecond}
	p := holdfast.Policy{
		Retry:    &retry.Policy{MaxAttempts: rapid.IntRange(1, 3).Draw(t, "MaxAttempts"), Backoff: retry.Backoff{Base: 10 * time.Millisecond}, Budget: retry.NoBudget()},
		Breaker:  &breaker.Config{Window: breaker.Window{Calls: 1000}, MinCalls: 1000, FailureRate: 1},
		Bulkhead: &bulkhead.Config{Limit: 100},
		Timeout:  limits,
	}
	if opens { // else nothing is refused, and what is booked can be counted
		p.Breaker = &breaker.Config{Consecutive: 2, Cooldown: 300 * time.Millisecond, ProbeSuccesses: 1, ProbeTimeout: 200 * time.Millisecond}
		p.Bulkhead.Limit = rapid.IntRange(1, 4).Draw(t, "permits")
	}
	var made, ended atomic.Int64
	k, err := holdfast.New(holdfast.Config{Default: p, Hooks: holdfast.Hooks{
		Attempt: func(ctx context.Context, _ call.Attempt) (context.Context, func(call.Result)) {
			made.Add(1)
			return ctx, func(call.Result) { ended.Add(1) }
		},
	}})
	require.NoError(t, err)

	var servers []*script
	var ups []grpcmw.Upstream
	var names []string
	for i := range n {
		name := string(rune('a' + i))
		s := &script{}
		for range rapid.IntRange(1, 5).Draw(t, "steps") {
			s.steps = append(s.steps, whim(rapid.SampledFrom(whims).Draw(t, name), name))
		}
		s.Server = memgrpc.Serve(t, func(grpc.ServiceRegistrar) {}, grpc.UnknownServiceHandler(s.handle))
		servers, names = append(servers, s), append(names, name)
		ups = append(ups, grpcmw.Upstream{Conn: s.Dial(), Name: name})
	}
	f, err := grpcmw.Failover(k, ups)
	require.NoError(t, err)

	forced, before := -1, 0
	if rapid.Bool().Draw(t, "the first is forced open") {
		_, _ = invoke(t.Context(), f) // its breaker is made by a call
		for name, b := range k.Breakers() {
			if name == "a" {
				b.ForceOpen("test")
				forced, before = 0, servers[0].hitCount()
			}
		}
	}
	asked := map[string]bool{} // whether the RPC may be repeated
	for i := range rapid.IntRange(1, 6).Draw(t, "calls") {
		safety := rapid.SampledFrom([]call.Safety{call.Unsafe, call.Unsafe, call.Idempotent, call.ReadOnly}).Draw(t, "safety")
		keyed := rapid.Bool().Draw(t, "keyed")
		streams := rapid.Bool().Draw(t, "streams")
		refuse := rapid.IntRange(-1, n-1).Draw(t, "refuses")
		gives := rapid.IntRange(0, 5).Draw(t, "gives up") == 0
		id := fmt.Sprint(i)
		asked[id] = safety.Repeatable() || keyed

		ctx, cancel := context.WithCancel(holdfast.WithOverride(t.Context(), holdfast.Override{Safety: safety}))
		ctx = metadata.AppendToOutgoingContext(ctx, "call", id)
		if keyed {
			ctx = metadata.AppendToOutgoingContext(ctx, "idempotency-key", id)
		}
		if gives {
			time.AfterFunc(30*time.Millisecond, cancel)
		}
		if refuse >= 0 {
			servers[refuse].Wire.Refuse(true)
			servers[refuse].Wire.Reset()
		}
		upstream := ""
		var texts []string
		if streams {
			ctx = metadata.AppendToOutgoingContext(ctx, "streams", "yes")
			if s, err := open(ctx, f, serverStream, grpcmw.ReportUpstream(&upstream)); err == nil {
				texts, _ = readAll(s)
			}
		} else if text, err := invoke(ctx, f, grpcmw.ReportUpstream(&upstream)); err == nil {
			texts = append(texts, text)
		}
		for i, text := range texts {
			require.Equal(t, fmt.Sprint(upstream, i+1), text, "all from the one that is reported, in their order")
		}
		cancel()
		if refuse >= 0 {
			servers[refuse].Wire.Refuse(false)
		}
		time.Sleep(time.Duration(rapid.IntRange(0, 4).Draw(t, "pause")) * 100 * time.Millisecond)
	}
	time.Sleep(time.Second)
	synctest.Wait()

	reached := map[string][]string{}
	for i, s := range servers {
		for _, md := range s.incoming {
			id := strings.Join(md.Get("call"), ",")
			reached[id] = append(reached[id], names[i])
		}
		require.Zero(t, s.runningCount(), "what has lost is cancelled")
	}
	for id, repeatable := range asked {
		if !repeatable {
			require.LessOrEqual(t, len(reached[id]), 1, "call %s was sent to %v", id, reached[id])
		}
	}
	if forced >= 0 {
		require.Equal(t, before, servers[forced].hitCount(), "it is forced open")
	}
	require.Equal(t, made.Load(), ended.Load(), "attempts ended")
	booked := int64(0)
	for _, b := range k.Breakers() {
		counts := b.Counts()
		booked += int64(counts.Results) + int64(counts.Totals.Neutral)
		require.Zero(t, counts.Probes)
	}
	if !opens && forced < 0 {
		require.Equal(t, made.Load(), booked, "each attempt is booked once")
	}
	for name, b := range k.Bulkheads() {
		require.Zero(t, b.InUse(), "permits of %s", name)
	}
}
