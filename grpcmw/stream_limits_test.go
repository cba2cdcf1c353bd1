package grpcmw_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/breaker"
	"github.com/holdfast-go/holdfast/call"
	"github.com/holdfast-go/holdfast/grpcmw"
	"github.com/holdfast-go/holdfast/timeout"
)

func TestD075_TheAttemptsLimitEndsWithTheOpening(t *testing.T) { // T1, T3
	bubble(t, func(t *testing.T) {
		s := play(t, messages(10, 60*time.Millisecond, nil))
		cc := s.connect(t, newKit(t, with(func(p *holdfast.Policy) {
			p.Timeout = &timeout.Limits{Attempt: 50 * time.Millisecond, Total: 55 * time.Millisecond}
		})))
		stream, err := open(t.Context(), cc, serverStream)
		require.NoError(t, err)
		texts, err := readAll(stream)
		require.NoError(t, err)
		require.Len(t, texts, 10)

		ctx, cancel := context.WithTimeout(t.Context(), 330*time.Millisecond)
		defer cancel()
		stream, err = open(ctx, cc, serverStream)
		require.NoError(t, err)
		texts, err = readAll(stream)
		require.Equal(t, codes.DeadlineExceeded, status.Code(err))
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.NotErrorIs(t, err, timeout.ErrExceeded)
		require.Len(t, texts, 5)
	})
}

// The opening itself is bounded: here nobody takes the connection.
func TestT3_TheLimitBoundsTheOpening(t *testing.T) {
	for name, limits := range map[string]timeout.Limits{
		"Attempt": {Attempt: 100 * time.Millisecond}, "Total": {Total: 100 * time.Millisecond},
	} {
		bubble(t, func(t *testing.T) {
			s := play(t, messages(1, 0, nil))
			s.Wire.Hang(true)
			cc := s.connect(t, newKit(t, with(func(p *holdfast.Policy) { single(p); oneAttempt(p); p.Timeout = &limits })))
			for range 2 {
				begin := time.Now()
				_, err := open(t.Context(), cc, serverStream)
				require.Equal(t, 100*time.Millisecond, time.Since(begin))
				require.ErrorIs(t, err, timeout.ErrExceeded)
				require.Equal(t, codes.DeadlineExceeded, status.Code(err))
				require.ErrorContains(t, err, name)
			}
		})
	}
}

func TestT4_TheFirstMessageIsBoundedIfThePolicySaysSo(t *testing.T) {
	bubble(t, func(t *testing.T) {
		var seen verdicts
		s := play(t, silent, messages(3, 150*time.Millisecond, nil))
		cc := s.connect(t, newKit(t, with(func(p *holdfast.Policy) {
			single(p)
			seen.note(p)
			p.Timeout.FirstMessage = 200 * time.Millisecond
		})))
		stream, err := open(t.Context(), cc, serverStream)
		require.NoError(t, err)
		begin := time.Now()
		_, err = readAll(stream)
		require.Equal(t, 200*time.Millisecond, time.Since(begin))
		require.ErrorIs(t, err, timeout.ErrExceeded)
		require.ErrorContains(t, err, "FirstMessage")
		require.Equal(t, codes.DeadlineExceeded, status.Code(err))
		_, again := readAll(stream)
		require.Equal(t, err, again, "the reason is told again to who asks again")
		require.Equal(t, []call.Class{call.TimedOut}, seen.take())

		stream, err = open(t.Context(), cc, serverStream) // slower than the limit as a whole
		require.NoError(t, err)
		texts, err := readAll(stream)
		require.NoError(t, err)
		require.Len(t, texts, 3)
	})
}

// With a limit on the first message, Total goes on to it too.
func TestT3_TotalGoesOnToTheFirstMessageIfThatIsBounded(t *testing.T) {
	for first, want := range map[time.Duration]time.Duration{0: time.Minute, 10 * time.Second: 300 * time.Millisecond, 200 * time.Millisecond: 200 * time.Millisecond} {
		bubble(t, func(t *testing.T) {
			s := play(t, silent)
			cc := s.connect(t, newKit(t, with(func(p *holdfast.Policy) {
				p.Timeout = &timeout.Limits{Attempt: 100 * time.Millisecond, Total: 300 * time.Millisecond, FirstMessage: first}
			})))
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			stream, err := open(ctx, cc, serverStream)
			require.NoError(t, err)
			begin := time.Now()
			_, err = readAll(stream)
			require.Equal(t, codes.DeadlineExceeded, status.Code(err))
			require.Equal(t, want, time.Since(begin))
		})
	}
}

// A limit that has passed ends the attempt even if the wire then comes with a
// stream or a message: the context is cancelled already.
func TestT1_WhatComesJustTooLate(t *testing.T) {
	late := func(ctx context.Context, _ *grpc.StreamDesc, _ *grpc.ClientConn, _ string, _ grpc.Streamer, _ ...grpc.CallOption) (grpc.ClientStream, error) {
		time.Sleep(150 * time.Millisecond) // whatever the context says
		return &fake{ctx: ctx, slow: 150 * time.Millisecond}, nil
	}
	for name, c := range map[string]struct {
		limits timeout.Limits
		opens  bool
	}{
		"a stream":  {timeout.Limits{Attempt: 100 * time.Millisecond}, false},
		"a message": {timeout.Limits{FirstMessage: 200 * time.Millisecond}, true},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				var seen verdicts
				i := grpcmw.StreamClientInterceptor(newKit(t, with(func(p *holdfast.Policy) { single(p); seen.note(p); p.Timeout = &c.limits })))
				for range 2 {
					stream, err := i(t.Context(), serverStream, nil, method, func(ctx context.Context, d *grpc.StreamDesc, cc *grpc.ClientConn, m string, opts ...grpc.CallOption) (grpc.ClientStream, error) {
						return late(ctx, d, cc, m, nil, opts...)
					})
					if c.opens {
						require.NoError(t, err)
						err = stream.RecvMsg(nil)
					}
					require.ErrorIs(t, err, timeout.ErrExceeded)
					require.Equal(t, codes.DeadlineExceeded, status.Code(err))
					require.Equal(t, []call.Class{call.TimedOut}, seen.take())
				}
			})
		})
	}
}

// An open stream may be silent as long as it likes, unless its first message has
// a limit: then it counts in the search for a silent dependency.
func TestB11_SilentStreams(t *testing.T) {
	for first, opens := range map[time.Duration]bool{0: false, time.Minute: true} {
		bubble(t, func(t *testing.T) {
			s := play(t, silent)
			cc := s.connect(t, newKit(t, with(func(p *holdfast.Policy) {
				p.Timeout.FirstMessage = first
				p.Breaker.Stall = breaker.Stall{After: time.Second, Calls: 3}
			})))
			for range 5 {
				_, err := open(t.Context(), cc, bidiStream)
				require.NoError(t, err)
			}
			time.Sleep(5 * time.Second)
			_, err := open(t.Context(), cc, bidiStream)
			require.Equal(t, opens, errors.Is(err, breaker.ErrOpen), "%v", err)
		})
	}
}

// A stream is slow by the time to its first message, not by its length.
func TestD076_SlowIsTheTimeToTheFirstMessage(t *testing.T) {
	for name, c := range map[string]struct {
		answer hit
		opens  bool
	}{
		"a long stream":        {messages(10, 50*time.Millisecond, nil), false},
		"a late first message": {after(150*time.Millisecond, messages(1, 0, nil)), true},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				s := play(t, c.answer)
				cc := s.connect(t, newKit(t, with(func(p *holdfast.Policy) {
					p.Breaker.SlowCall, p.Breaker.SlowRate = 100*time.Millisecond, 0.5
				})))
				for range 5 {
					stream, err := open(t.Context(), cc, serverStream)
					require.NoError(t, err)
					_, err = readAll(stream)
					require.NoError(t, err)
				}
				_, err := open(t.Context(), cc, serverStream)
				require.Equal(t, c.opens, errors.Is(err, breaker.ErrOpen))
			})
		})
	}
}

// Idle bounds each wait for a message, and not the pauses of the caller.
func TestT3_IdleBoundsEachWaitOfRecvMsg(t *testing.T) {
	bubble(t, func(t *testing.T) {
		var seen verdicts
		s := play(t, func(ss grpc.ServerStream) error {
			if err := messages(3, 60*time.Millisecond, nil)(ss); err != nil {
				return err
			}
			return silent(ss)
		})
		cc := s.connect(t, newKit(t, with(func(p *holdfast.Policy) {
			single(p)
			seen.note(p)
			p.Timeout = &timeout.Limits{Idle: 100 * time.Millisecond}
		})))
		for range 2 {
			stream, err := open(t.Context(), cc, serverStream)
			require.NoError(t, err)
			for range 3 {
				require.NoError(t, stream.RecvMsg(new(wrapperspb.StringValue)))
				time.Sleep(time.Second)
			}
			begin := time.Now()
			err = stream.RecvMsg(new(wrapperspb.StringValue))
			require.Equal(t, 100*time.Millisecond, time.Since(begin))
			require.ErrorIs(t, err, timeout.ErrExceeded)
			require.ErrorContains(t, err, "Idle")
			require.Equal(t, codes.DeadlineExceeded, status.Code(err))
			require.Equal(t, []call.Class{call.TimedOut}, seen.take())
		}
	})
}
