package grpcmw_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/peer"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/breaker"
	"github.com/holdfast-go/holdfast/bulkhead"
	"github.com/holdfast-go/holdfast/call"
	"github.com/holdfast-go/holdfast/grpcmw"
	"github.com/holdfast-go/holdfast/retry"
	"github.com/holdfast-go/holdfast/timeout"
)

const ms = time.Millisecond

func hedgedRead(p *holdfast.Policy) {
	readOnly(p)
	p.Retry.Hedge = retry.Hedge{Delay: 10 * ms}
}

// tagged answers with a header and a trailer that tell which hit it was.
func tagged(tag string, then hit) hit {
	return func(s grpc.ServerStream) error {
		s.SetTrailer(metadata.Pairs("tag", tag))
		if err := s.SetHeader(metadata.Pairs("tag", tag)); err != nil {
			return err
		}
		return then(s)
	}
}

// R10, D082: the first acceptable answer wins with its header, trailer and peer.
func TestD082_TheFirstAcceptableAnswerWins(t *testing.T) {
	for name, tc := range map[string]struct {
		steps []hit
		hits  int
		reply string
		tag   string
		code  codes.Code
		took  time.Duration
	}{
		"the first is quick":                      {[]hit{after(5*ms, say("one"))}, 1, "one", "1", codes.OK, 5 * ms},
		"the hedge wins":                          {[]hit{silent, after(5*ms, say("two"))}, 2, "two", "2", codes.OK, 15 * ms},
		"the first wins after all":                {[]hit{after(50*ms, say("one")), silent}, 2, "one", "1", codes.OK, 50 * ms},
		"the first fails, then the hedge is good": {[]hit{after(15*ms, fail(codes.Unavailable)), after(50*ms, say("two"))}, 2, "two", "2", codes.OK, 60 * ms},
		"both fail":                               {[]hit{after(15*ms, fail(codes.Internal)), after(50*ms, fail(codes.Unavailable))}, 2, "", "1", codes.Internal, 60 * ms},
		"the hedge's word is final":               {[]hit{silent, after(5*ms, fail(codes.NotFound))}, 2, "", "2", codes.NotFound, 15 * ms},
		"the first fails at once and is repeated": {[]hit{fail(codes.Unavailable), silent, after(5*ms, say("three"))}, 3, "three", "3", codes.OK, 25 * ms},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				steps := make([]hit, len(tc.steps))
				for i, step := range tc.steps {
					steps[i] = tagged(fmt.Sprint(i+1), step)
				}
				s := play(t, steps...)
				cc := s.connect(t, newKit(t, with(hedgedRead)))
				header, trailer, from := metadata.Pairs("tag", "older"), metadata.Pairs("tag", "older"), peer.Peer{}
				finished := 0
				begin := time.Now()
				reply := wrapperspb.String("older")
				err := cc.Invoke(t.Context(), method, wrapperspb.String("hello"), reply, grpc.Header(&header), grpc.Trailer(&trailer), grpc.Peer(&from),
					grpc.OnFinish(func(error) { finished++ }))
				require.Equal(t, tc.took, time.Since(begin))
				require.Equal(t, tc.code, status.Code(err), "%v", err)
				require.Equal(t, tc.reply, reply.GetValue())
				require.Equal(t, []string{tc.tag}, trailer.Get("tag"))
				if tc.code == codes.OK {
					require.Equal(t, []string{tc.tag}, header.Get("tag"))
				}
				require.NotNil(t, from.Addr)
				require.Equal(t, 1, finished)
				synctest.Wait()
				require.Equal(t, tc.hits, s.hitCount())
				require.Zero(t, s.runningCount(), "the server has seen the loser's cancel")
			})
		})
	}
}

// R10: what an earlier race was told is gone when the call ends in a later one that was
// told nothing; a repeat that is refused leaves it, for that end is the call's.
func TestR10_TheTargetsAreOfTheLastRace(t *testing.T) {
	for name, tc := range map[string]struct {
		failures int // that open the breaker
		tags     []string
	}{"cut short": {5, nil}, "refused": {1, []string{"1"}}} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				s := play(t, tagged("1", fail(codes.Unavailable)), silent)
				cc := s.connect(t, newKit(t, with(func(p *holdfast.Policy) {
					hedgedRead(p)
					p.Breaker.Consecutive = tc.failures
				})))
				ctx, cancel := context.WithTimeout(t.Context(), 40*ms)
				defer cancel()
				var header, trailer metadata.MD
				_, err := invoke(ctx, cc, grpc.Header(&header), grpc.Trailer(&trailer))
				require.Error(t, err)
				require.Equal(t, tc.tags, header.Get("tag"))
				require.Equal(t, tc.tags, trailer.Get("tag"))
			})
		})
	}
}

// D081: a reply of 512 KiB comes whole from whichever attempt has won: the first, the
// hedge, or either where both answer in the same moment.
func TestD081_LargeRepliesComeWhole(t *testing.T) {
	for name, c := range map[string]struct {
		first time.Duration // the hedge answers after 30 ms
		tags  []string
	}{
		"the first wins": {29 * ms, []string{"first"}},
		"the hedge wins": {31 * ms, []string{"hedge"}},
		"a tie":          {30 * ms, []string{"first", "hedge"}},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				text := strings.Repeat("0123456789abcdef", 32<<10)
				var steps []hit
				for range 100 {
					steps = append(steps, after(c.first, tagged("first", say(text))), after(10*ms, tagged("hedge", say(text))))
				}
				s := play(t, steps...)
				cc := s.connect(t, newKit(t, with(func(p *holdfast.Policy) {
					hedgedRead(p)
					p.Retry.Hedge.Delay = 20 * ms
				})))
				for range 100 {
					var trailer metadata.MD
					got, err := invoke(t.Context(), cc, grpc.Trailer(&trailer))
					require.NoError(t, err)
					require.True(t, text == got, "%d bytes", len(got))
					require.Subset(t, c.tags, trailer.Get("tag"))
				}
				time.Sleep(50 * ms)
				synctest.Wait()
				require.Equal(t, 200, s.hitCount(), "each was hedged")
				require.Zero(t, s.runningCount())
			})
		})
	}
}

// R10: a reply is handed over with everything in it, and replaces what was there.
func TestR10_AReplyIsHandedOverWhole(t *testing.T) {
	answer := wrapperspb.String("two")
	answer.ProtoReflect().SetUnknown([]byte{0x12, 0x03, 'a', 'b', 'c'}) // a field that this client does not know
	bubble(t, func(t *testing.T) {
		s := play(t, silent, func(s grpc.ServerStream) error {
			if err := s.RecvMsg(new(wrapperspb.StringValue)); err != nil {
				return err
			}
			return s.SendMsg(answer)
		})
		cc := s.connect(t, newKit(t, with(hedgedRead)))
		reply := wrapperspb.String("older")
		reply.ProtoReflect().SetUnknown([]byte{0x12, 0x01, 'x'})
		require.NoError(t, cc.Invoke(t.Context(), method, wrapperspb.String("hello"), reply))
		require.True(t, proto.Equal(answer, reply), "%v", reply)

		s = play(t, say(""))
		reply = wrapperspb.String("older")
		require.NoError(t, s.connect(t, newKit(t, with(hedgedRead))).Invoke(t.Context(), method, wrapperspb.String("hello"), reply))
		require.Empty(t, reply.GetValue())
	})
}

// R10: an interceptor further in may change its attempt's request, and leave
// things to do behind; under -race.
func TestR10_EachAttemptHasItsOwnRequestAndReply(t *testing.T) {
	bubble(t, func(t *testing.T) {
		s := play(t, silent, say("two"))
		cc := s.connect(t, newKit(t, with(hedgedRead)), grpc.WithChainUnaryInterceptor(
			func(ctx context.Context, m string, req, reply any, cc *grpc.ClientConn, invoker grpc.UnaryInvoker, opts ...grpc.CallOption) error {
				q, p := req.(*wrapperspb.StringValue), reply.(*wrapperspb.StringValue)
				require.Equal(t, "hello", q.GetValue())
				q.Value = "changed"
				err := invoker(ctx, m, req, reply, cc, opts...)
				if err != nil {
					p.Value = "rubbish"
				}
				return err
			}))
		req, reply := wrapperspb.String("hello"), new(wrapperspb.StringValue)
		require.NoError(t, cc.Invoke(t.Context(), method, req, reply))
		require.Equal(t, "hello", req.GetValue())
		require.Equal(t, "two", reply.GetValue())
	})
}

// R10: what is not hedged.
func TestR10_WhatIsNotHedged(t *testing.T) {
	for name, tc := range map[string]struct {
		change func(*holdfast.Policy)
		hits   int
	}{
		"a read is":              {func(*holdfast.Policy) {}, 2},
		"undeclared":             {func(p *holdfast.Policy) { p.Safety = call.SafetyUnknown }, 1},
		"undeclared, with a key": {func(p *holdfast.Policy) { p.Safety = call.SafetyUnknown; p.Retry.IdempotencyKey = true }, 1},
		"a full bulkhead":        {func(p *holdfast.Policy) { p.Bulkhead = &bulkhead.Config{Limit: 1} }, 1},
		"a spent budget":         {func(p *holdfast.Policy) { p.Retry.Budget = retry.Budget{Initial: 0.1, PerSecond: 1e-6} }, 1},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				s := play(t, after(50*ms, say("x")))
				cc := s.connect(t, newKit(t, with(func(p *holdfast.Policy) { hedgedRead(p); tc.change(p) })))
				_, err := invoke(t.Context(), cc)
				require.NoError(t, err)
				synctest.Wait()
				require.Equal(t, tc.hits, s.hitCount())
			})
		})
	}
	t.Run("no protobuf message", func(t *testing.T) { // another codec's
		var mu sync.Mutex
		hits := 0
		u := grpcmw.UnaryClientInterceptor(newKit(t, with(hedgedRead)))
		bubble(t, func(t *testing.T) {
			for _, args := range [][2]any{{&plain{"q"}, new(plain)}, {wrapperspb.String("q"), (*wrapperspb.StringValue)(nil)}} {
				hits = 0
				err := u(t.Context(), method, args[0], args[1], nil, func(context.Context, string, any, any, *grpc.ClientConn, ...grpc.CallOption) error {
					mu.Lock()
					hits++
					mu.Unlock()
					time.Sleep(50 * ms)
					return nil
				})
				require.NoError(t, err)
				require.Equal(t, 1, hits)
			}
		})
	})
}

// D083: a half-open breaker's probe is neither hedged nor repeated.
func TestD083_AProbeIsNotHedged(t *testing.T) {
	bubble(t, func(t *testing.T) {
		s := play(t, fail(codes.Unavailable), fail(codes.Unavailable), fail(codes.Unavailable), fail(codes.Unavailable), fail(codes.Unavailable),
			after(100*ms, fail(codes.Unavailable)))
		cc := s.connect(t, newKit(t, with(hedgedRead)))
		for range 2 {
			_, err := invoke(t.Context(), cc)
			require.Error(t, err)
		}
		require.Equal(t, 5, s.hitCount())
		time.Sleep(time.Second)
		_, err := invoke(t.Context(), cc)
		require.Equal(t, codes.Unavailable, status.Code(err))
		require.NotErrorIs(t, err, breaker.ErrOpen)
		require.Equal(t, 6, s.hitCount())
		_, err = invoke(t.Context(), cc)
		require.ErrorIs(t, err, breaker.ErrOpen)
	})
}

// R9, R11, D037: a hedge carries the same key, and its number.
func TestD037_AHedgePairHasOneKey(t *testing.T) {
	bubble(t, func(t *testing.T) {
		s := play(t, silent, say("x"))
		var mu sync.Mutex
		var signed []int
		cc := s.Dial(grpcmw.DialOptions(newKit(t, with(hedgedRead)), grpcmw.WithAttemptHook(
			func(_ context.Context, _ string, attempt int, md metadata.MD) error {
				mu.Lock()
				defer mu.Unlock()
				signed = append(signed, attempt)
				md.Set("sig", fmt.Sprint(attempt))
				return nil
			}))...)
		_, err := invoke(metadata.AppendToOutgoingContext(t.Context(), "idempotency-key", "mine"), cc)
		require.NoError(t, err)
		require.Equal(t, [][]string{{"mine"}, {"mine"}}, s.told("idempotency-key"))
		require.Equal(t, [][]string{nil, {"1"}}, s.told("grpc-previous-rpc-attempts"))
		require.Equal(t, [][]string{{"1"}, {"2"}}, s.told("sig"))
		require.Equal(t, []int{1, 2}, signed)
	})
}

// A hedge that cannot be made ready does not harm the attempt that it was to help.
func TestR10_AHedgeThatFailsHereHarmsNothing(t *testing.T) {
	bubble(t, func(t *testing.T) {
		s := play(t, after(50*ms, say("one")))
		cc := s.Dial(grpcmw.DialOptions(newKit(t, with(hedgedRead)), grpcmw.WithAttemptHook(
			func(_ context.Context, _ string, attempt int, _ metadata.MD) error {
				if attempt > 1 {
					return status.Error(codes.Unauthenticated, "no second signature")
				}
				return nil
			}))...)
		got, err := invoke(t.Context(), cc)
		require.NoError(t, err)
		require.Equal(t, "one", got)
	})
}

// D053: losers leave nothing behind, and no permit is lost; the breaker takes none
// of them for a failure.
func TestD053_LosersLeaveNothing(t *testing.T) {
	bubble(t, func(t *testing.T) {
		turn := 0
		var mu sync.Mutex
		s := play(t, func(ss grpc.ServerStream) error {
			mu.Lock()
			turn++
			slow := turn%2 == 1
			mu.Unlock()
			if slow {
				return silent(ss)
			}
			return say("x")(ss)
		})
		cc := s.connect(t, newKit(t, with(func(p *holdfast.Policy) {
			hedgedRead(p)
			p.Bulkhead = &bulkhead.Config{Limit: 2}
			p.Timeout = timeout.Off()
		})))
		for range 200 {
			_, err := invoke(t.Context(), cc)
			require.NoError(t, err)
		}
		synctest.Wait()
		require.Equal(t, 400, s.hitCount())
		require.Zero(t, s.runningCount())
	})
}
