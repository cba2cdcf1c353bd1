package grpcmw_test

import (
	"context"
	"errors"
	"io"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/breaker"
	"github.com/holdfast-go/holdfast/bulkhead"
	"github.com/holdfast-go/holdfast/retry"
	"github.com/holdfast-go/holdfast/timeout"
)

// scenario is one situation that must come out the same over any wire.
type scenario struct {
	policy func(*holdfast.Policy)
	steps  []hit
	play   func(t *testing.T, cc *grpc.ClientConn, s *script)
}

// scenarios is the table of what users of the HTTP adapter are promised too,
// here for gRPC. No scenario measures time: over a real socket that would be real.
var scenarios = map[string]scenario{
	"a read is repeated until it is good": {readOnly, []hit{fail(codes.Unavailable), fail(codes.Internal), say("third")},
		func(t *testing.T, cc *grpc.ClientConn, s *script) {
			got, err := invoke(t.Context(), cc)
			require.NoError(t, err)
			require.Equal(t, "third", got)
			require.Equal(t, 3, s.hitCount())
		}},
	"D038: a write that may have arrived is not": {nil, []hit{fail(codes.Unavailable)},
		func(t *testing.T, cc *grpc.ClientConn, s *script) {
			_, err := invoke(t.Context(), cc)
			require.Equal(t, codes.Unavailable, status.Code(err))
			require.Equal(t, 1, s.hitCount())
		}},
	"R9: unless it carries a key": {nil, []hit{fail(codes.Unavailable), say("second")},
		func(t *testing.T, cc *grpc.ClientConn, s *script) {
			_, err := invoke(metadata.AppendToOutgoingContext(t.Context(), "idempotency-key", "k"), cc)
			require.NoError(t, err)
			require.Equal(t, 2, s.hitCount())
		}},
	"D028: an open circuit is refused at once": {oneAttempt, []hit{fail(codes.Unavailable)},
		func(t *testing.T, cc *grpc.ClientConn, s *script) {
			for range 5 {
				_, _ = invoke(t.Context(), cc)
			}
			_, err := invoke(t.Context(), cc)
			require.ErrorIs(t, err, breaker.ErrOpen)
			require.Equal(t, codes.Unavailable, status.Code(err))
			require.Equal(t, 5, s.hitCount())
		}},
	"D020: a client's fault is a sign of life": {readOnly, []hit{fail(codes.NotFound)},
		func(t *testing.T, cc *grpc.ClientConn, s *script) {
			for range 20 {
				_, err := invoke(t.Context(), cc)
				require.Equal(t, codes.NotFound, status.Code(err))
			}
			require.Equal(t, 20, s.hitCount())
		}},
	"D017: a silent server opens the circuit": {func(p *holdfast.Policy) { oneAttempt(p); p.Timeout.Attempt = 30 * time.Millisecond }, []hit{silent},
		func(t *testing.T, cc *grpc.ClientConn, s *script) {
			for range 5 {
				_, err := invoke(t.Context(), cc)
				require.ErrorIs(t, err, timeout.ErrExceeded)
				require.Equal(t, codes.DeadlineExceeded, status.Code(err))
			}
			_, err := invoke(t.Context(), cc)
			require.ErrorIs(t, err, breaker.ErrOpen)
		}},
	"D032: an attempt that took too long is repeated": {func(p *holdfast.Policy) { readOnly(p); p.Timeout.Attempt = 30 * time.Millisecond }, []hit{silent, silent, say("third")},
		func(t *testing.T, cc *grpc.ClientConn, s *script) {
			got, err := invoke(t.Context(), cc)
			require.NoError(t, err)
			require.Equal(t, "third", got)
		}},
	"D016, D052: a caller that leaves is no failure": {func(p *holdfast.Policy) { readOnly(p); p.Timeout = timeout.Off() }, []hit{silent},
		func(t *testing.T, cc *grpc.ClientConn, s *script) {
			gone := errors.New("the page was closed")
			for range 8 {
				ctx, cancel := context.WithCancelCause(t.Context())
				time.AfterFunc(10*time.Millisecond, func() { cancel(gone) })
				_, err := invoke(ctx, cc)
				require.Equal(t, codes.Canceled, status.Code(err))
				require.ErrorIs(t, err, gone)
				require.NotErrorIs(t, err, timeout.ErrExceeded)
			}
		}},
	"K2: a full bulkhead refuses, and a stream's end makes room": {func(p *holdfast.Policy) { p.Bulkhead = &bulkhead.Config{Limit: 1} }, []hit{messages(2, 0, nil)},
		func(t *testing.T, cc *grpc.ClientConn, s *script) {
			held, err := open(t.Context(), cc, serverStream)
			require.NoError(t, err)
			_, err = invoke(t.Context(), cc)
			require.ErrorIs(t, err, bulkhead.ErrFull)
			require.Equal(t, codes.ResourceExhausted, status.Code(err))
			texts, err := readAll(held)
			require.NoError(t, err)
			require.Equal(t, []string{"a", "b"}, texts)
			again, err := open(t.Context(), cc, serverStream)
			require.NoError(t, err)
			_, err = readAll(again)
			require.NoError(t, err)
		}},
	"D075: a stream outlives the attempt's limit": {func(p *holdfast.Policy) { p.Timeout.Attempt = 30 * time.Millisecond }, []hit{messages(4, 100*time.Millisecond, nil)}, // 300 ms is what it is over TCP
		func(t *testing.T, cc *grpc.ClientConn, s *script) {
			st, err := open(t.Context(), cc, serverStream)
			require.NoError(t, err)
			texts, err := readAll(st)
			require.NoError(t, err)
			require.Len(t, texts, 4)
		}},
	"D076: one that breaks off is a failure": {nil, []hit{messages(1, 0, status.Error(codes.Unavailable, "broke off"))},
		func(t *testing.T, cc *grpc.ClientConn, s *script) {
			for range 5 {
				st, err := open(t.Context(), cc, serverStream)
				require.NoError(t, err)
				texts, err := readAll(st)
				require.Equal(t, codes.Unavailable, status.Code(err))
				require.Len(t, texts, 1, "D079: it is not opened again")
			}
			_, err := open(t.Context(), cc, serverStream)
			require.ErrorIs(t, err, breaker.ErrOpen)
			require.Equal(t, 5, s.hitCount())
		}},
	"D079: one that fails before its first message is opened again": {readOnly, []hit{fail(codes.Unavailable), messages(3, 0, nil)},
		func(t *testing.T, cc *grpc.ClientConn, s *script) {
			st, err := open(t.Context(), cc, serverStream)
			require.NoError(t, err)
			texts, err := readAll(st)
			require.NoError(t, err)
			require.Equal(t, []string{"a", "b", "c"}, texts)
			require.Equal(t, 2, s.hitCount())
		}},
	"D077: a client's stream ends well": {nil, []hit{say("counted")},
		func(t *testing.T, cc *grpc.ClientConn, s *script) {
			st, err := open(t.Context(), cc, clientStream)
			require.NoError(t, err)
			require.NoError(t, st.SendMsg(wrapperspb.String("one")))
			require.NoError(t, st.CloseSend())
			m := new(wrapperspb.StringValue)
			require.NoError(t, st.RecvMsg(m))
			require.Equal(t, "counted", m.GetValue())
			require.Equal(t, io.EOF, st.RecvMsg(m))
		}},
	"D040: pushback is heeded": {readOnly, []hit{func(s grpc.ServerStream) error {
		s.SetTrailer(metadata.Pairs("grpc-retry-pushback-ms", "-1"))
		return status.Error(codes.Unavailable, "leave me alone")
	}},
		func(t *testing.T, cc *grpc.ClientConn, s *script) {
			_, err := invoke(t.Context(), cc)
			require.Equal(t, codes.Unavailable, status.Code(err))
			require.Equal(t, 1, s.hitCount())
		}},
	"D081: a hedge brings the answer": {func(p *holdfast.Policy) { readOnly(p); p.Retry.Hedge = retry.Hedge{Delay: 10 * time.Millisecond} }, []hit{silent, say("second")},
		func(t *testing.T, cc *grpc.ClientConn, s *script) {
			got, err := invoke(t.Context(), cc)
			require.NoError(t, err)
			require.Equal(t, "second", got)
		}},
	"D072: the server's own status comes back": {readOnly, []hit{fail(codes.DataLoss)},
		func(t *testing.T, cc *grpc.ClientConn, s *script) {
			_, err := invoke(t.Context(), cc)
			require.Equal(t, "as scripted", status.Convert(err).Message())
			require.Equal(t, codes.DataLoss, status.Code(err))
			require.Equal(t, 1, s.hitCount())
		}},
}

// Every scenario comes out the same in memory and over TCP.
func TestScenariosOverEachWire(t *testing.T) {
	for name, sc := range scenarios {
		p := policy()
		if sc.policy != nil {
			sc.policy(&p)
		}
		t.Run("in memory/"+name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				s := play(t, sc.steps...)
				sc.play(t, s.connect(t, newKit(t, p)), s)
			})
		})
		t.Run("over TCP/"+name, func(t *testing.T) {
			s := &script{steps: sc.steps}
			server := grpc.NewServer(grpc.UnknownServiceHandler(s.handle))
			l := listen(t)
			go func() { _ = server.Serve(l) }()
			t.Cleanup(server.Stop)
			if !p.Timeout.IsOff() { // real time: a busy machine must not pass for a silent server
				roomy := *p.Timeout
				roomy.Attempt *= 10
				p.Timeout = &roomy
			}
			sc.play(t, dial(t, l.Addr().String(), p), s)
		})
	}
}
