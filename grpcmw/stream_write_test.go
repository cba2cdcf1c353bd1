package grpcmw_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/call"
	"github.com/holdfast-go/holdfast/fallback"
	"github.com/holdfast-go/holdfast/retry"
	"github.com/holdfast-go/holdfast/timeout"
)

// said is what an error tells of a write.
type said string

const (
	itsOwn      said = "" // it is not the kit's own
	saidUnsent  said = "; the call was not sent; nothing was stored or pretended"
	saidUnknown said = "; the outcome is unknown: the call may have taken effect; nothing was stored or pretended"
)

// saidBy returns what an error tells of a write, once.
func saidBy(t *testing.T, err error) said {
	t.Helper()
	write, ok := errors.AsType[*fallback.WriteError](err)
	if !ok {
		require.NotContains(t, err.Error(), "nothing was stored")
		return itsOwn
	}
	what := saidUnsent
	if write.Sent {
		what = saidUnknown
	}
	require.True(t, strings.HasSuffix(err.Error(), string(what)), err)
	require.Equal(t, 1, strings.Count(err.Error(), "nothing was stored"), err)
	require.Equal(t, errors.Is(err, context.DeadlineExceeded) || errors.Is(err, timeout.ErrFloor), write.Timeout(), err)
	return what
}

// F1: the error of a stream that may change something says what became of the write,
// by the rule of a unary RPC: what the kit says, that a limit has passed or that it
// turned the stream away, says too whether the write may have arrived; the words of
// the server and of the wire come back as they are, and a read has the bare error.
func TestF1_AStreamsErrorSaysWhatBecameOfTheWrite(t *testing.T) { // G1
	for name, end := range writeEnds {
		for kind, desc := range kinds {
			for _, safety := range []call.Safety{call.SafetyUnknown, call.Idempotent, call.ReadOnly} {
				t.Run(name+", "+kind+", "+safety.String(), func(t *testing.T) {
					bubble(t, func(t *testing.T) { end.play(t, safety, desc) })
				})
			}
		}
		if !end.streamOnly {
			t.Run(name+", unary", func(t *testing.T) {
				bubble(t, func(t *testing.T) { end.play(t, call.SafetyUnknown, nil) })
			})
		}
	}
}

// play ends a stream, or without a desc a unary RPC.
func (end writeEnd) play(t *testing.T, safety call.Safety, desc *grpc.StreamDesc) {
	p := policy()
	p.Safety = safety
	if safety != call.SafetyUnknown {
		p.Retry = retry.Off()
	}
	if end.change != nil {
		end.change(&p)
	}
	var returned error
	k, err := holdfast.New(holdfast.Config{Default: p, Hooks: holdfast.Hooks{
		Returned: func(_ context.Context, r holdfast.Returned) { returned = r.Err },
	}})
	require.NoError(t, err)
	answer := end.answer
	if answer == nil {
		answer = silent
	}
	s := &writeScene{script: play(t, messages(1, 0, nil), answer), t: t, k: k}
	s.cc = s.connect(t, k)
	first, err := open(t.Context(), s.cc, serverStream)
	require.NoError(t, err)
	_, err = readAll(first)
	require.NoError(t, err)
	if end.before != nil {
		end.before(s)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if end.ctx != nil {
		ctx, cancel = end.ctx(t.Context())
		defer cancel()
	}

	var stream grpc.ClientStream
	var told error
	finish := grpc.OnFinish(func(err error) { told = err })
	if desc == nil {
		_, err = invoke(ctx, s.cc, finish)
	} else if stream, err = s.cc.NewStream(ctx, desc, method, finish); err == nil {
		use := end.use
		if use == nil {
			use = toTheEnd
		}
		err = use(s, stream)
	}
	require.Error(t, err)
	synctest.Wait() // gRPC may have more to say, on a goroutine of its own
	want := end.said
	if safety == call.ReadOnly {
		want = itsOwn
	}
	require.Equal(t, want, saidBy(t, err), err)
	for _, err := range []error{err, fmt.Errorf("around: %w", err)} {
		require.Equal(t, end.code, status.Code(err))
		st, ok := status.FromError(err)
		require.True(t, ok)
		require.Equal(t, end.code, st.Code())
		if end.is != nil {
			require.ErrorIs(t, err, end.is)
		}
	}
	require.Equal(t, err, told, "OnFinish is told the same")
	require.Equal(t, want, saidBy(t, returned), "and so are the hooks")
	if stream != nil {
		again := stream.RecvMsg(new(wrapperspb.StringValue))
		require.Equal(t, end.code, status.Code(again), again)
		require.Equal(t, want, saidBy(t, again), "and who asks again")
	}
}
