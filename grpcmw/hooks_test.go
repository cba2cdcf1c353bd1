package grpcmw_test

import (
	"context"
	"fmt"
	"io"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/call"
	"github.com/holdfast-go/holdfast/fallback"
	"github.com/holdfast-go/holdfast/grpcmw"
	"github.com/holdfast-go/holdfast/internal/logbook"
	"github.com/holdfast-go/holdfast/retry"
)

// ledger notes begin and end of calls and attempts, and gives each attempt
// metadata of its own.
type ledger struct{ logbook.Book }

func (l *ledger) hooks() holdfast.Hooks {
	return holdfast.Hooks{
		Call: func(context.Context, call.Info) (context.Context, func(holdfast.CallEnd)) {
			return nil, func(e holdfast.CallEnd) {
				l.Note("call over: %v after %d, error %v", e.Result.Class, e.Attempts, e.Err != nil)
			}
		},
		Attempt: func(_ context.Context, a call.Attempt) (context.Context, func(call.Result)) {
			if slices.Contains(a.Header.Keys(), "x-attempt") || a.Header.Get("X-Attempt") != "" {
				l.Note("the metadata of another attempt")
			}
			a.Header.Set("X-Attempt", fmt.Sprint(a.Wire, a.Number))
			return nil, func(r call.Result) { l.Note("attempt %d over: %v", a.Number, r.Class) }
		},
		Returned: func(_ context.Context, r holdfast.Returned) { l.Note("returned: %v", r.Result.Class) },
		Refused:  func(_ context.Context, r holdfast.Refusal) { l.Note("refused %d: %v", r.Attempt, r.Cause) },
	}
}

func (l *ledger) kit(t *testing.T, p holdfast.Policy) *holdfast.Kit {
	t.Helper()
	k, err := holdfast.New(holdfast.Config{Default: p, Hooks: l.hooks()})
	require.NoError(t, err)
	k.Count()
	return k
}

// TestO1: a hook sets metadata of each attempt, hedges included, before the hook
// that signs.
func TestO1_AHookSetsTheAttemptsMetadata(t *testing.T) {
	bubble(t, func(t *testing.T) {
		l := &ledger{}
		s := play(t, fail(codes.Unavailable), say("done"))
		cc := s.Dial(grpcmw.DialOptions(l.kit(t, with(readOnly)), grpcmw.WithAttemptHook(
			func(_ context.Context, _ string, _ int, md metadata.MD) error {
				md.Set("signed", "over "+md.Get("x-attempt")[0])
				return nil
			}))...)
		ctx := metadata.AppendToOutgoingContext(t.Context(), "own", "kept")
		_, err := invoke(ctx, cc)
		require.NoError(t, err)
		require.Equal(t, []string{"attempt 1 over: unavailable", "attempt 2 over: ok", "returned: ok", "call over: ok after 2, error false"}, l.Take())
		require.Equal(t, [][]string{{"grpc1"}, {"grpc2"}}, s.told("x-attempt"))
		require.Equal(t, [][]string{{"over grpc1"}, {"over grpc2"}}, s.told("signed"))
		require.Equal(t, [][]string{{"kept"}, {"kept"}}, s.told("own"))
		md, _ := metadata.FromOutgoingContext(ctx)
		require.Equal(t, metadata.Pairs("own", "kept"), md, "the caller's own is not changed")
	})
	bubble(t, func(t *testing.T) {
		l := &ledger{}
		s := play(t, silent, say("done"))
		cc := s.connect(t, l.kit(t, with(func(p *holdfast.Policy) {
			readOnly(p)
			p.Retry = &retry.Policy{Hedge: retry.Hedge{Delay: 10 * time.Millisecond}}
		})))
		_, err := invoke(t.Context(), cc)
		require.NoError(t, err)
		synctest.Wait()
		require.Equal(t, [][]string{{"grpc1"}, {"grpc2"}}, s.told("x-attempt"))
		require.ElementsMatch(t, []string{"attempt 1 over: canceled", "attempt 2 over: ok", "returned: ok", "call over: ok after 2, error false"}, l.Take())
	})
}

// However a stream ends, its call and its attempts are over once, and counted once.
func TestO1_AStreamIsOverOnce(t *testing.T) {
	read := func(t *testing.T, cc *grpc.ClientConn) { // to its end, whatever that is
		if st, err := open(t.Context(), cc, serverStream); err == nil {
			_, _ = readAll(st)
		}
	}
	for name, tc := range map[string]struct {
		steps []hit
		run   func(*testing.T, *grpc.ClientConn)
		want  []string
	}{
		"to its end": {[]hit{messages(3, 0, nil)}, read, []string{"attempt 1 over: ok", "returned: ok", "call over: ok after 1, error false"}},
		"repeated": {[]hit{fail(codes.Unavailable), messages(1, 0, nil)}, read, []string{
			"attempt 1 over: unavailable", "attempt 2 over: ok", "returned: ok", "call over: ok after 2, error false",
		}},
		"broken in the middle": {[]hit{messages(2, 0, errLost)}, read, []string{
			"attempt 1 over: unavailable", "returned: unavailable", "call over: unavailable after 1, error true",
		}},
		"never good": {[]hit{fail(codes.Unavailable)}, read, []string{
			"attempt 1 over: unavailable", "attempt 2 over: unavailable", "attempt 3 over: unavailable",
			"returned: unavailable", "call over: unavailable after 3, error true",
		}},
		"a client's fault": {[]hit{fail(codes.NotFound)}, read, []string{
			"attempt 1 over: client_fault", "returned: client_fault", "call over: client_fault after 1, error true",
		}},
		"cancelled, and read": {[]hit{messages(100, time.Second, nil)}, func(t *testing.T, cc *grpc.ClientConn) {
			ctx, cancel := context.WithCancel(t.Context())
			st, err := open(ctx, cc, serverStream)
			require.NoError(t, err)
			require.NoError(t, st.RecvMsg(new(wrapperspb.StringValue)))
			cancel()
			require.Error(t, st.RecvMsg(new(wrapperspb.StringValue)))
		}, []string{"attempt 1 over: canceled", "returned: canceled", "call over: canceled after 1, error true"}},
		"cancelled, and not read": {[]hit{silent}, func(t *testing.T, cc *grpc.ClientConn) {
			ctx, cancel := context.WithCancel(t.Context())
			_, err := open(ctx, cc, serverStream)
			require.NoError(t, err)
			cancel()
			synctest.Wait()
		}, []string{"attempt 1 over: canceled", "returned: canceled", "call over: canceled after 1, error true"}},
		"of one answer": {[]hit{say("done")}, func(t *testing.T, cc *grpc.ClientConn) {
			st, err := open(t.Context(), cc, clientStream)
			require.NoError(t, err)
			require.NoError(t, st.SendMsg(wrapperspb.String("x")))
			require.NoError(t, st.CloseSend())
			require.NoError(t, st.RecvMsg(new(wrapperspb.StringValue)))
			require.Equal(t, io.EOF, st.RecvMsg(new(wrapperspb.StringValue)))
		}, []string{"attempt 1 over: ok", "returned: ok", "call over: ok after 1, error false"}},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				l := &ledger{}
				s := play(t, tc.steps...)
				k := l.kit(t, with(readOnly))
				cc := s.connect(t, k)
				tc.run(t, cc)
				synctest.Wait()
				require.Equal(t, tc.want, l.Take())
				var calls, attempts uint64
				for _, tally := range k.Tallies() {
					for c := call.OK; c.Valid(); c++ {
						calls += tally.Calls(c)
						attempts += tally.Attempts(c)
					}
				}
				require.EqualValues(t, 1, calls)
				require.EqualValues(t, s.hitCount(), attempts)
			})
		})
	}
}

var errLost = fail(codes.Unavailable)(nil)

// A refused stream is refused in every word.
func TestO1_ARefusedStreamIsTold(t *testing.T) {
	bubble(t, func(t *testing.T) {
		l := &ledger{}
		s := play(t, say("x"))
		k := l.kit(t, policy())
		cc := s.connect(t, k)
		_, err := invoke(t.Context(), cc)
		require.NoError(t, err)
		for _, b := range k.Breakers() {
			b.ForceOpen("test")
		}
		l.Take()
		_, err = open(t.Context(), cc, serverStream)
		require.Error(t, err)
		require.Equal(t, []string{"refused 1: forced_open", "returned: refused", "call over: refused after 0, error true"}, l.Take())
	})
}

// A hook that panics when a stream begins has its OnFinish called, and nothing is
// left behind.
func TestO1_APanickingHookEndsTheStream(t *testing.T) {
	for name, hooks := range map[string]holdfast.Hooks{
		"call": {Call: func(context.Context, call.Info) (context.Context, func(holdfast.CallEnd)) { panic("boom") }},
		"attempt": {Attempt: func(context.Context, call.Attempt) (context.Context, func(call.Result)) {
			panic("boom")
		}},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				s := play(t, messages(1, 0, nil))
				k, err := holdfast.New(holdfast.Config{Default: with(single), Hooks: hooks})
				require.NoError(t, err)
				cc, finished := s.connect(t, k), 0
				require.PanicsWithValue(t, "boom", func() {
					_, _ = open(t.Context(), cc, serverStream, grpc.OnFinish(func(error) { finished++ }))
				})
				synctest.Wait()
				require.Equal(t, 1, finished)
				require.Zero(t, s.hitCount())
				require.Zero(t, inUse(k))
			})
		})
	}
}

// B1: an Identity that panics ends the call for those who watch it.
func TestB1_APanickingIdentityEndsTheCall(t *testing.T) {
	bubble(t, func(t *testing.T) {
		s, l := play(t, say("x")), &ledger{}
		p := with(oneAttempt)
		p.Safety = call.ReadOnly
		p.Fallback = &fallback.Policy{Stale: &fallback.Stale{
			Store: newStore(t), Identity: func(context.Context, fallback.Request) string { panic("boom") },
		}}
		k := l.kit(t, p)
		cc := s.connect(t, k)
		require.PanicsWithValue(t, "boom", func() {
			_ = cc.Invoke(t.Context(), readMethod, wrapperspb.String("x"), new(wrapperspb.StringValue))
		})
		require.Equal(t, []string{"call over: server_fault after 0, error false"}, l.Take())
		faults := uint64(0)
		for _, tally := range k.Tallies() {
			faults += tally.Calls(call.ServerFault)
		}
		require.EqualValues(t, 1, faults)
	})
}

// D064: a fallback whose reply is of another type has failed, for those who count too.
func TestD064_AReplyOfTheWrongTypeIsNoSuccess(t *testing.T) {
	bubble(t, func(t *testing.T) {
		s, l := play(t, func(grpc.ServerStream) error { return status.Error(codes.Unavailable, "down") }), &ledger{}
		p := with(oneAttempt)
		p.Safety = call.ReadOnly
		var answer proto.Message = wrapperspb.Int64(1)
		p.Fallback = &fallback.Policy{Answer: func(context.Context, fallback.Failure) (any, error) { return answer, nil }}
		k := l.kit(t, p)
		cc, reply := s.connect(t, k), new(wrapperspb.StringValue)
		err := cc.Invoke(t.Context(), readMethod, wrapperspb.String("x"), reply)
		require.Equal(t, codes.Unavailable, status.Code(err))
		require.ErrorContains(t, err, "the fallback answered with")
		answer = wrapperspb.String("y")
		require.NoError(t, cc.Invoke(t.Context(), readMethod, wrapperspb.String("x"), reply))
		require.Equal(t, "y", reply.GetValue())
		served := uint64(0)
		for _, tally := range k.Tallies() {
			served += tally.Fallbacks()
		}
		require.EqualValues(t, 1, served)
	})
}
