package grpcmw_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/structpb"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/breaker"
	"github.com/holdfast-go/holdfast/call"
	"github.com/holdfast-go/holdfast/fallback"
	"github.com/holdfast-go/holdfast/grpcmw"
)

// remote is a store elsewhere, which fails or, without an error, is silent.
type remote struct{ err error }

func (r remote) wait(ctx context.Context) error {
	if r.err != nil {
		return r.err
	}
	<-ctx.Done()
	return ctx.Err()
}

func (r remote) Get(ctx context.Context, _ string) ([]byte, error) { return nil, r.wait(ctx) }

func (r remote) Set(ctx context.Context, _ string, _ []byte, _ time.Duration) error {
	return r.wait(ctx)
}

func (r remote) Delete(ctx context.Context, _ string) error { return r.wait(ctx) }

// F5: a store elsewhere that fails, or is silent, makes nothing worse: a good RPC is not
// held up, a failed one has its own status after StoreTimeout at the latest, and says what
// became of the fallback.
func TestF5_AStoreThatFailsMakesNothingWorse(t *testing.T) {
	down := errors.New("no store")
	for _, store := range []remote{{}, {down}} {
		bubble(t, func(t *testing.T) {
			st := forAll()
			st.Store = store
			o := staleOrigin(t, st, parrot)
			begin := time.Now()
			got, _, err := o.call(t.Context(), readMethod, "x")
			require.NoError(t, err)
			require.Equal(t, "x", got)
			require.Zero(t, time.Since(begin))
			time.Sleep(time.Second)
			o.down.Store(true)

			begin = time.Now()
			got, header, err := o.call(t.Context(), readMethod, "x")
			require.Empty(t, got)
			require.False(t, isStale(header))
			require.Equal(t, codes.Unavailable, status.Code(err), "the server's own")
			require.Equal(t, store.err == nil, time.Since(begin) == 100*time.Millisecond)
			if store.err == nil {
				require.ErrorIs(t, err, context.DeadlineExceeded)
			} else {
				require.ErrorIs(t, err, down)
			}
			require.Len(t, o.told, 1)
			require.Equal(t, fallback.KindStale, o.told[0].Kind)
			require.Error(t, o.told[0].Err)

			ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
			defer cancel()
			begin = time.Now()
			_, _, err = o.call(ctx, readMethod, "x")
			require.Error(t, err)
			require.LessOrEqual(t, time.Since(begin), 20*time.Millisecond, "nor longer than the caller waits")
		})
	}
}

// answering is a kit whose reads, which have three attempts, are answered by a function.
func answering(t *testing.T, answer func(context.Context, fallback.Failure) (any, error)) *holdfast.Kit {
	t.Helper()
	return newKit(t, with(func(p *holdfast.Policy) {
		readOnly(p)
		p.Fallback = &fallback.Policy{Answer: answer}
	}))
}

// F1, F4: a default is copied into each caller's reply, and says that it is none of the
// server's; a write has its error.
func TestF4_AStaticReply(t *testing.T) {
	bubble(t, func(t *testing.T) {
		empty, err := structpb.NewStruct(map[string]any{"list": []any{}})
		require.NoError(t, err)
		s := play(t, fail(codes.Unavailable))
		cc := s.connect(t, answering(t, fallback.Static(empty)))
		for range 2 {
			var header metadata.MD
			reply := &structpb.Struct{}
			require.NoError(t, cc.Invoke(t.Context(), method, wrapperspb.String("x"), reply, grpc.Header(&header)))
			require.Equal(t, empty.String(), reply.String())
			require.Equal(t, []string{"holdfast; fwd=miss; detail=computed-for-unavailable"}, header["cache-status"])
			clear(reply.Fields) // it is the caller's own
		}
		reply := &structpb.Struct{}
		write := grpcmw.WithOverride(holdfast.Override{Safety: call.Idempotent})
		err = cc.Invoke(t.Context(), method, wrapperspb.String("x"), reply, write)
		require.Equal(t, codes.Unavailable, status.Code(err))
		require.Empty(t, reply.Fields)
	})
}

// F1, F5: a computed answer knows why and after how many attempts the RPC has failed, and
// what may be known of the upstream that failed last.
func TestF5_AComputedReplyKnowsTheFailure(t *testing.T) {
	bubble(t, func(t *testing.T) {
		var seen []fallback.Failure
		k := answering(t, func(_ context.Context, f fallback.Failure) (any, error) {
			seen = append(seen, f)
			return wrapperspb.String("none"), nil
		})
		s := play(t, func(grpc.ServerStream) error { return detailed(t, codes.Unavailable).Err() })
		got, err := invoke(t.Context(), s.connect(t, k))
		require.NoError(t, err)
		require.Equal(t, "none", got)
		require.Equal(t, call.Info{Target: "passthrough:///api.test", Method: method, Safety: call.ReadOnly}, seen[0].Info)
		require.Equal(t, []any{call.Unavailable, int(codes.Unavailable), 3}, []any{seen[0].Class, seen[0].Code, seen[0].Attempts})
		requireDetail(t, codes.Unavailable, seen[0].Err)

		got, _, err = ask(t.Context(), over(t, k, s, s))
		require.NoError(t, err)
		require.Equal(t, "none", got)
		require.Equal(t, []any{"b", 6}, []any{seen[1].Info.Target, seen[1].Attempts}, "three rounds of two")

		for _, b := range k.Breakers() {
			b.ForceOpen("")
		}
		got, err = invoke(t.Context(), s.connect(t, k))
		require.NoError(t, err)
		require.Equal(t, "none", got)
		require.Equal(t, []any{call.Refused, 0}, []any{seen[2].Class, seen[2].Attempts})
		require.ErrorIs(t, seen[2].Err, breaker.ErrOpen)
	})
}

// F2: a computed answer has the caller's time and no more, and a caller who is gone is not
// asked for.
func TestF2_AComputedReplyHasTheCallersTime(t *testing.T) {
	bubble(t, func(t *testing.T) {
		asked := 0
		k := answering(t, func(ctx context.Context, _ fallback.Failure) (any, error) {
			asked++
			deadline, ok := ctx.Deadline()
			require.True(t, ok)
			require.Equal(t, 470*time.Millisecond, time.Until(deadline), "two back-offs have passed")
			<-ctx.Done()
			return nil, ctx.Err()
		})
		cc := play(t, fail(codes.Unavailable)).connect(t, k)
		ctx, cancel := context.WithTimeout(t.Context(), 500*time.Millisecond)
		defer cancel()
		begin := time.Now()
		_, err := invoke(ctx, cc)
		require.Equal(t, 500*time.Millisecond, time.Since(begin))
		require.Equal(t, codes.Unavailable, status.Code(err), "the server's own")
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.Equal(t, 1, asked)

		ctx, cancel = context.WithCancel(t.Context())
		time.AfterFunc(5*time.Millisecond, cancel) // in the back-off
		_, err = invoke(ctx, cc)
		require.Equal(t, codes.Canceled, status.Code(err))
		require.Equal(t, 1, asked)
	})
}

// F1: no fallback answers for a stream, be it a read, and none is kept for one.
func TestF1_AStreamHasNoFallback(t *testing.T) {
	bubble(t, func(t *testing.T) {
		store := newStore(t)
		k := newKit(t, with(func(p *holdfast.Policy) {
			readOnly(p)
			oneAttempt(p)
			p.Breaker = &breaker.Config{Consecutive: 1000}
			p.Fallback = &fallback.Policy{
				Stale: &fallback.Stale{Store: store, Identity: fallback.SharedByAll},
				Answer: func(context.Context, fallback.Failure) (any, error) {
					t.Error("it is asked")
					return wrapperspb.String(""), nil
				},
			}
		}))
		s := play(t, messages(1, 0, nil), fail(codes.Unavailable))
		cc := s.connect(t, k)
		for kind, desc := range kinds {
			s.mu.Lock()
			s.hits = 0 // the script begins anew
			s.mu.Unlock()
			require.NoError(t, stream(t.Context(), cc, desc), kind)
			require.Zero(t, store.Len())
			require.Equal(t, codes.Unavailable, status.Code(stream(t.Context(), cc, desc)), kind)
		}
		for _, b := range k.Breakers() {
			b.ForceOpen("")
		}
		require.ErrorIs(t, stream(t.Context(), cc, serverStream), breaker.ErrOpen)
	})
}
