package grpcmw_test

import (
	"context"
	"errors"
	"io"
	"runtime"
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

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/breaker"
	"github.com/holdfast-go/holdfast/call"
	"github.com/holdfast-go/holdfast/retry"
)

// A stream that fails before its first message is opened again, and the caller
// sees one clean sequence. After that the error is the caller's. G3.
func TestD079_RepeatedBeforeTheFirstMessageOnly(t *testing.T) {
	bubble(t, func(t *testing.T) {
		down := messages(0, 0, errDown)
		s := play(t, down, down, messages(10, 0, nil), messages(3, 0, errDown), messages(10, 0, nil))
		var seen verdicts
		cc := s.connect(t, newKit(t, with(func(p *holdfast.Policy) { readOnly(p); single(p); seen.note(p) })))
		ends := 0
		stream, err := open(t.Context(), cc, serverStream, grpc.OnFinish(func(err error) { require.NoError(t, err); ends++ }))
		require.NoError(t, err)
		texts, err := readAll(stream)
		require.NoError(t, err)
		require.Equal(t, "abcdefghij", strings.Join(texts, ""))
		require.Equal(t, 3, s.hitCount())
		require.Equal(t, []call.Class{call.Unavailable, call.Unavailable, call.OK}, seen.take())
		require.Equal(t, 1, ends)

		stream, err = open(t.Context(), cc, serverStream)
		require.NoError(t, err)
		texts, err = readAll(stream)
		require.Equal(t, errDown.Error(), err.Error())
		require.Equal(t, []string{"a", "b", "c"}, texts)
		require.Equal(t, 4, s.hitCount())
		require.Equal(t, []call.Class{call.Unavailable}, seen.take())
	})
}

// Each attempt is told anew what the caller has sent, and which it is.
func TestG3_ARepeatIsTheSameRequest(t *testing.T) {
	bubble(t, func(t *testing.T) {
		var asked []string
		step := func(end error) hit {
			return func(ss grpc.ServerStream) error {
				for {
					m := new(wrapperspb.StringValue)
					if err := ss.RecvMsg(m); err == io.EOF {
						return end
					} else if err != nil {
						return err
					}
					asked = append(asked, m.GetValue())
				}
			}
		}
		s := play(t, step(errDown), step(errDown), step(nil))
		cc := s.connect(t, newKit(t, with(func(p *holdfast.Policy) { p.Retry.IdempotencyKey = true })))
		stream, err := open(t.Context(), cc, serverStream)
		require.NoError(t, err)
		_, err = readAll(stream)
		require.NoError(t, err)
		require.Equal(t, []string{"hello", "hello", "hello"}, asked)
		var previous []string
		for _, md := range s.incoming {
			previous = append(previous, strings.Join(md["grpc-previous-rpc-attempts"], ","))
			require.Equal(t, s.incoming[0]["idempotency-key"], md["idempotency-key"])
			require.Len(t, md["idempotency-key"], 1)
		}
		require.Equal(t, []string{"", "1", "2"}, previous)
	})
}

// An attempt that is given up is cancelled before the next one opens, and no two
// stand beside each other.
func TestD080_AnAbandonedAttemptIsCancelledFirst(t *testing.T) {
	bubble(t, func(t *testing.T) {
		var beside atomic.Int32
		var s *script
		lonely := func(next hit) hit {
			return func(ss grpc.ServerStream) error {
				if s.runningCount() != 1 {
					beside.Add(1)
				}
				return next(ss)
			}
		}
		late := lonely(silent)
		live := lonely(func(ss grpc.ServerStream) error {
			if err := ss.SendMsg(wrapperspb.String("live")); err != nil {
				return err
			}
			return silent(ss)
		})
		s = play(t, live, late, late, late, late, late, live)
		cc := s.connect(t, newKit(t, with(func(p *holdfast.Policy) {
			readOnly(p)
			single(p)
			p.Retry.MaxAttempts = 6
			p.Breaker = breaker.Off()
			p.Timeout.FirstMessage = 50 * time.Millisecond
		})))
		live1, cancel := context.WithCancel(t.Context())
		read := func(ctx context.Context) {
			stream, err := open(ctx, cc, serverStream)
			require.NoError(t, err)
			m := new(wrapperspb.StringValue)
			require.NoError(t, stream.RecvMsg(m))
			require.Equal(t, "live", m.GetValue())
		}
		read(live1)
		synctest.Wait()
		one := runtime.NumGoroutine()
		cancel()
		synctest.Wait()

		read(t.Context())
		synctest.Wait()
		require.Equal(t, 7, s.hitCount())
		require.Equal(t, 1, s.runningCount())
		require.Equal(t, 1+5, s.canceled)
		require.Zero(t, beside.Load())
		require.LessOrEqual(t, runtime.NumGoroutine(), one+1, "one stream's worth; the runtime may have started one of its own")
	})
}

// What may be repeated, by the kind of the stream and by what its caller has done.
func TestG3_WhatIsRepeated(t *testing.T) {
	recv := func(s grpc.ClientStream) error { return s.RecvMsg(new(wrapperspb.StringValue)) }
	then := func(do func(grpc.ClientStream) error) func(grpc.ClientStream) error {
		return func(s grpc.ClientStream) error {
			if err := do(s); err != nil && !errors.Is(err, io.EOF) {
				return err
			}
			return recv(s)
		}
	}
	send := func(s grpc.ClientStream) error { return s.SendMsg(wrapperspb.String("sent")) }
	for name, c := range map[string]struct {
		desc *grpc.StreamDesc
		do   func(grpc.ClientStream) error
		hits int
	}{
		"server stream":                 {serverStream, then(send), 3},
		"server stream, closed":         {serverStream, then(func(s grpc.ClientStream) error { return errors.Join(send(s), s.CloseSend()) }), 3},
		"server stream, header first":   {serverStream, then(func(s grpc.ClientStream) error { _, err := s.Header(); return err }), 3},
		"bidi, nothing sent":            {bidiStream, recv, 3},
		"bidi, closed":                  {bidiStream, then(grpc.ClientStream.CloseSend), 3},
		"bidi, sent":                    {bidiStream, then(send), 1},
		"client stream, nothing sent":   {clientStream, then(grpc.ClientStream.CloseSend), 3},
		"client stream, sent":           {clientStream, then(send), 1},
		"client stream, sent and close": {clientStream, then(func(s grpc.ClientStream) error { return errors.Join(send(s), s.CloseSend()) }), 1},
	} {
		for safety, hits := range map[call.Safety]int{call.ReadOnly: c.hits, call.Idempotent: c.hits, call.Unsafe: 1} {
			t.Run(name+" "+safety.String(), func(t *testing.T) {
				bubble(t, func(t *testing.T) {
					s := play(t, func(grpc.ServerStream) error { return errDown })
					cc := s.connect(t, newKit(t, with(func(p *holdfast.Policy) { single(p); p.Safety = safety })))
					stream, err := cc.NewStream(t.Context(), c.desc, method)
					require.NoError(t, err)
					synctest.Wait()
					err = c.do(stream)
					require.Equal(t, codes.Unavailable, status.Code(err))
					require.Equal(t, hits, s.hitCount())
					require.Equal(t, codes.Unavailable, status.Code(recv(stream)), "it stays so")
					require.Equal(t, hits, s.hitCount())
				})
			})
		}
	}
}

// A header that was handed out settles the attempt.
func TestG3_AHeaderSettlesTheAttempt(t *testing.T) {
	bubble(t, func(t *testing.T) {
		s := play(t,
			func(ss grpc.ServerStream) error { return errDown },
			func(ss grpc.ServerStream) error {
				if err := ss.SendHeader(metadata.Pairs("which", "second")); err != nil {
					return err
				}
				time.Sleep(time.Millisecond)
				return errDown
			},
			messages(1, 0, nil))
		cc := s.connect(t, newKit(t, with(readOnly)))
		stream, err := open(t.Context(), cc, serverStream)
		require.NoError(t, err)
		md, err := stream.Header()
		require.NoError(t, err)
		require.Equal(t, []string{"second"}, md["which"])
		_, err = readAll(stream)
		require.Equal(t, codes.Unavailable, status.Code(err))
		require.Equal(t, 2, s.hitCount())
	})
}

// A stream that no connection takes is opened again whatever its method may do.
func TestG3_AnOpeningThatSentNothingIsRepeated(t *testing.T) {
	for name, desc := range map[string]*grpc.StreamDesc{"server": serverStream, "client": clientStream, "bidi": bidiStream} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				s := play(t, silent)
				s.Wire.Refuse(true)
				time.AfterFunc(1500*time.Millisecond, func() { s.Wire.Refuse(false) })
				var seen verdicts
				cc := s.connect(t, newKit(t, with(func(p *holdfast.Policy) {
					single(p)
					seen.note(p)
					p.Retry.MaxAttempts, p.Retry.Backoff = 5, retry.Backoff{Base: time.Second, Factor: 1, Jitter: retry.NoJitter}
				})))
				_, err := cc.NewStream(t.Context(), desc, method)
				require.NoError(t, err)
				classes := seen.take()
				require.GreaterOrEqual(t, len(classes), 2)
				for _, class := range classes {
					require.Equal(t, call.Unavailable, class)
				}
			})
		})
	}
}
