package grpcmw_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/peer"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/breaker"
	"github.com/holdfast-go/holdfast/call"
	"github.com/holdfast-go/holdfast/grpcmw"
	"github.com/holdfast-go/holdfast/retry"
	"github.com/holdfast-go/holdfast/timeout"
)

// Why a stream is not opened once more is in its error, beside the server's own.
func TestR12_WhyAStreamIsNotRepeated(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*holdfast.Policy)
		reason error
		hits   int
	}{
		"no budget": {func(p *holdfast.Policy) {
			p.Retry.Budget = retry.Budget{PerSecond: 1e-6, Cap: 1, Initial: 1}
		}, retry.ErrBudget, 2},
		"the circuit opens": {func(p *holdfast.Policy) { p.Breaker.Consecutive = 2 }, breaker.ErrOpen, 2},
		"no time":           {func(p *holdfast.Policy) { p.Timeout = &timeout.Limits{Total: 25 * time.Millisecond} }, retry.ErrNoTime, 2},
		"no attempt left":   {func(*holdfast.Policy) {}, nil, 3},
		"a limit of its own": {func(p *holdfast.Policy) {
			p.Classify = func(_ context.Context, _ call.Info, r call.Result) call.Result { r.NoRetry = true; return r }
		}, nil, 1},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				s := play(t, messages(0, 0, errDown))
				cc := s.connect(t, newKit(t, with(func(p *holdfast.Policy) { readOnly(p); single(p); c.change(p) })))
				var end error
				stream, err := open(t.Context(), cc, serverStream, grpc.OnFinish(func(err error) { end = err }))
				require.NoError(t, err)
				_, err = readAll(stream)
				require.Equal(t, codes.Unavailable, status.Code(err))
				require.Equal(t, c.hits, s.hitCount())
				require.Equal(t, err, end)
				var stopped *retry.StoppedError
				if c.reason == nil {
					require.NotErrorAs(t, err, &stopped)
					return
				}
				require.ErrorAs(t, err, &stopped)
				require.ErrorIs(t, err, c.reason)
				require.Equal(t, c.hits, stopped.Attempts)
				_, again := readAll(stream)
				require.Equal(t, err, again, "it is said again")
			})
		})
	}
}

// What the caller's targets show is the last attempt's, also where that found no
// connection.
func TestTheTargetsOfARepeatedStream(t *testing.T) {
	bubble(t, func(t *testing.T) {
		failing := func(ss grpc.ServerStream) error {
			ss.SetTrailer(metadata.Pairs("which", "first"))
			return errDown
		}
		s := play(t, failing, func(ss grpc.ServerStream) error {
			ss.SetTrailer(metadata.Pairs("which", "second"))
			return ss.SendMsg(wrapperspb.String(""))
		}, failing)
		cc := s.connect(t, newKit(t, with(func(p *holdfast.Policy) { readOnly(p); p.Retry.MaxAttempts = 2 })))
		var header, trailer metadata.MD
		var p peer.Peer
		stream, err := open(t.Context(), cc, serverStream, grpc.Header(&header), grpc.Trailer(&trailer), grpc.Peer(&p))
		require.NoError(t, err)
		_, err = readAll(stream)
		require.NoError(t, err)
		require.Equal(t, []string{"second"}, trailer["which"])
		require.Equal(t, []string{"second"}, stream.Trailer()["which"])
		require.NotEmpty(t, header)
		require.NotNil(t, p.Addr)

		stream, err = open(t.Context(), cc, serverStream, grpc.Header(&header), grpc.Trailer(&trailer), grpc.Peer(&p))
		require.NoError(t, err)
		synctest.Wait()
		s.Wire.Refuse(true)
		s.Wire.Reset()
		_, err = readAll(stream)
		require.Equal(t, codes.Unavailable, status.Code(err))
		require.Nil(t, header)
		require.Nil(t, trailer)
		require.Nil(t, p.Addr)
	})
}

// During the wait the stream holds no permit (K2), and its caller can leave.
func TestK2_AStreamWaitsWithoutAPermit(t *testing.T) {
	bubble(t, func(t *testing.T) {
		s := play(t, messages(0, 0, errDown), messages(1, 0, nil))
		cc := s.connect(t, newKit(t, with(func(p *holdfast.Policy) {
			readOnly(p)
			single(p)
			p.Retry.Backoff = retry.Backoff{Base: time.Minute, Cap: time.Minute, Jitter: retry.NoJitter}
		})))
		ctx, cancel := context.WithCancel(t.Context())
		stream, err := open(ctx, cc, serverStream)
		require.NoError(t, err)
		got := make(chan error)
		go func() {
			_, err := readAll(stream)
			got <- err
		}()
		time.Sleep(time.Second)
		other, err := open(t.Context(), cc, serverStream)
		require.NoError(t, err)
		texts, err := readAll(other)
		require.NoError(t, err)
		require.Len(t, texts, 1)

		require.NoError(t, stream.Context().Err(), "it is the caller's until the stream is settled")
		cancel()
		require.Equal(t, codes.Canceled, status.Code(<-got))
		require.Equal(t, 2, s.hitCount())
	})
}

// A message that the caller sends while the stream is opened again goes to the
// attempt that stands, and after it nothing is repeated.
func TestG3_SendingWhileTheStreamIsOpenedAgain(t *testing.T) {
	bubble(t, func(t *testing.T) {
		echo := func(ss grpc.ServerStream) error {
			m := new(wrapperspb.StringValue)
			if err := ss.RecvMsg(m); err != nil {
				return err
			}
			return errors.Join(ss.SendMsg(m), errDown)
		}
		s := play(t, messages(0, 0, errDown), echo)
		cc := s.connect(t, newKit(t, with(readOnly)))
		stream, err := open(t.Context(), cc, bidiStream)
		require.NoError(t, err)
		sent := make(chan error)
		go func() {
			time.Sleep(5 * time.Millisecond) // amid the back-off
			sent <- stream.SendMsg(wrapperspb.String("for the second"))
		}()
		m := new(wrapperspb.StringValue)
		require.NoError(t, stream.RecvMsg(m))
		require.Equal(t, "for the second", m.GetValue())
		require.NoError(t, <-sent)
		require.Equal(t, codes.Unavailable, status.Code(stream.RecvMsg(m)))
		require.Equal(t, 2, s.hitCount())
	})
}

// A panic in a later attempt releases all, and goes on.
func TestB1_APanicInARepeat(t *testing.T) {
	bubble(t, func(t *testing.T) {
		s := play(t, messages(0, 0, errDown))
		k := newKit(t, with(func(p *holdfast.Policy) { readOnly(p); single(p); p.Breaker = breaker.Off() }))
		hook := grpcmw.WithAttemptHook(func(_ context.Context, _ string, n int, _ metadata.MD) error {
			if n == 2 {
				panic("hook")
			}
			return nil
		})
		cc := s.Dial(grpcmw.DialOptions(k, hook)...)
		for range 3 {
			ends := 0
			stream, err := open(t.Context(), cc, serverStream, grpc.OnFinish(func(error) { ends++ }))
			require.NoError(t, err)
			require.PanicsWithValue(t, "hook", func() { _, _ = readAll(stream) })
			_, err = readAll(stream)
			require.Equal(t, codes.Internal, status.Code(err))
			require.Equal(t, 1, ends)
		}
	})
}

func TestR2_AProbeOfAStreamIsNotRepeated(t *testing.T) {
	bubble(t, func(t *testing.T) {
		s := play(t, messages(0, 0, errDown))
		cc := s.connect(t, newKit(t, with(func(p *holdfast.Policy) { readOnly(p); p.Breaker.Consecutive = 3 })))
		read := func() int {
			before := s.hitCount()
			stream, err := open(t.Context(), cc, serverStream)
			require.NoError(t, err)
			_, err = readAll(stream)
			require.Equal(t, codes.Unavailable, status.Code(err))
			return s.hitCount() - before
		}
		require.Equal(t, 3, read())
		time.Sleep(time.Second)
		require.Equal(t, 1, read())
	})
}
