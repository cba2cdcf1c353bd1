package grpcmw_test

import (
	"context"
	"errors"
	"io"
	"sync"
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
	"github.com/holdfast-go/holdfast/fallback"
	"github.com/holdfast-go/holdfast/grpcmw"
	"github.com/holdfast-go/holdfast/retry"
	"github.com/holdfast-go/holdfast/timeout"
)

// plan is what one attempt at a stream does.
type plan struct {
	opens    bool
	header   bool
	pause    time.Duration // before the header and before each message
	messages int
	end      error
	panics   bool // instead of the end
}

// staged is a stream that follows a plan.
type staged struct {
	ctx    context.Context
	plan   plan
	number int

	mu   sync.Mutex
	sent int // messages to the caller
	asks int // messages from it
}

func (s *staged) wait() error {
	timer := time.NewTimer(s.plan.pause)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-s.ctx.Done():
	}
	if err := s.ctx.Err(); err != nil {
		return status.FromContextError(err).Err()
	}
	return nil
}

func (s *staged) RecvMsg(m any) error {
	if err := s.wait(); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.sent == s.plan.messages {
		if s.plan.panics {
			panic("planned")
		}
		return s.plan.end
	}
	s.sent++
	m.(*wrapperspb.StringValue).Value = string([]rune{rune('0' + s.number), rune('a' + s.sent)})
	return nil
}

func (s *staged) Header() (metadata.MD, error) {
	if err := s.wait(); err != nil {
		return nil, err
	}
	if !s.plan.header {
		return nil, status.Error(codes.Unavailable, "no header")
	}
	return metadata.MD{}, nil
}

func (s *staged) SendMsg(any) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.asks++
	return nil
}

func (s *staged) CloseSend() error         { return nil }
func (s *staged) Trailer() metadata.MD     { return nil }
func (s *staged) Context() context.Context { return s.ctx }

// G3, B1, K2, D079, D080: whatever attempts and callers do, there are no more attempts
// than allowed, one at a time, each cancelled and judged once; the caller sees the
// messages of one attempt in order, each server is asked once, the callbacks are
// called once, and nothing is held in the end. F1: if the end is the kit's own, and the
// stream is no read, it says that the write may have arrived.
func TestG3_WhateverHappensToAStream(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) { rapid.SyncTest(t, checkStream) })
}

func checkStream(t *rapid.T) {
	most := rapid.IntRange(1, 4).Draw(t, "MaxAttempts")
	milliseconds := func(name string, least, most int) time.Duration {
		return time.Duration(rapid.IntRange(least, most).Draw(t, name)) * time.Millisecond
	}
	judged := 0
	safety := rapid.SampledFrom([]call.Safety{call.ReadOnly, call.Idempotent}).Draw(t, "safety")
	k, err := holdfast.New(holdfast.Config{Default: holdfast.Policy{
		Safety:   safety,
		Retry:    &retry.Policy{MaxAttempts: most, Backoff: retry.Backoff{Base: 10 * time.Millisecond, Jitter: retry.NoJitter}, Budget: retry.NoBudget()},
		Breaker:  breaker.Off(),
		Bulkhead: &bulkhead.Config{Limit: 1},
		// A message that comes in the instant of a limit is there, and is not delivered:
		// limits lie between the moments at which anything comes.
		Timeout: &timeout.Limits{
			FirstMessage: milliseconds("FirstMessage", 0, 1) * 50250 / 1000,
			Idle:         milliseconds("Idle", 0, 1) * 60250 / 1000,
		},
		Classify: func(_ context.Context, _ call.Info, r call.Result) call.Result { judged++; return r },
	}})
	require.NoError(t, err)
	intercept := grpcmw.StreamClientInterceptor(k)

	plans := make([]plan, most)
	for i := range plans {
		plans[i] = plan{
			opens: rapid.IntRange(0, 4).Draw(t, "opens") > 0, header: rapid.Bool().Draw(t, "header"),
			pause: milliseconds("pause", 0, 80), messages: rapid.IntRange(0, 3).Draw(t, "messages"),
			end:    rapid.SampledFrom([]error{io.EOF, errDown, errDown, status.Error(codes.NotFound, "")}).Draw(t, "end"),
			panics: rapid.IntRange(0, 9).Draw(t, "panics") == 0,
		}
	}
	asksForTheHeader := rapid.Bool().Draw(t, "asks for the header")
	var streams []*staged
	opened := 0
	streamer := func(ctx context.Context, _ *grpc.StreamDesc, _ *grpc.ClientConn, _ string, _ ...grpc.CallOption) (grpc.ClientStream, error) {
		if len(streams) > 0 {
			require.Error(t, streams[len(streams)-1].ctx.Err(), "the one before is cancelled")
		}
		if opened++; opened > most {
			return nil, errDown // to be found below
		}
		p := plans[opened-1]
		if !p.opens {
			return nil, errDown
		}
		s := &staged{ctx: ctx, plan: p, number: opened}
		streams = append(streams, s)
		return s, nil
	}

	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	// Between the moments at which anything else happens.
	leaves := milliseconds("leaves", 0, 200) + time.Millisecond/2
	switch rapid.IntRange(0, 5).Draw(t, "the caller") {
	case 0:
		time.AfterFunc(leaves, cancel)
	case 1:
		ctx, cancel = context.WithTimeout(ctx, leaves)
		defer cancel()
	}
	ends := 0
	var texts []string
	var end, again error
	panicked := func() (value any) {
		defer func() { value = recover() }()
		var s grpc.ClientStream
		if s, end = intercept(ctx, serverStream, nil, method, streamer, grpc.OnFinish(func(error) { ends++ })); end != nil {
			return nil
		}
		end = errors.Join(s.SendMsg(wrapperspb.String("ask")), s.CloseSend())
		if asksForTheHeader {
			_, _ = s.Header()
		}
		for end == nil {
			m := new(wrapperspb.StringValue)
			if end = s.RecvMsg(m); end == nil {
				texts = append(texts, m.GetValue())
			}
		}
		again = s.RecvMsg(new(wrapperspb.StringValue))
		_ = s.Trailer()
		_ = s.Context()
		return nil
	}()
	synctest.Wait()

	if panicked != nil {
		require.Equal(t, "planned", panicked)
	}
	require.LessOrEqual(t, opened, most)
	require.Equal(t, opened, judged)
	require.Equal(t, 1, ends)
	for _, s := range streams {
		require.Error(t, s.ctx.Err())
		require.Equal(t, 1, s.asks)
		if len(texts) > 0 && s.number != int(texts[0][0]-'0') {
			require.Zero(t, s.sent, "an attempt that is not the last has delivered nothing")
		}
	}
	for i, text := range texts {
		require.Equal(t, string([]rune{rune(texts[0][0]), rune('b' + i)}), text)
	}
	if panicked == nil {
		require.Error(t, end)
		own := safety != call.ReadOnly && errors.Is(end, context.DeadlineExceeded) // all attempts count as sent here
		for _, err := range []error{end, again} {
			if write, ok := errors.AsType[*fallback.WriteError](err); ok || err == end {
				require.Equal(t, own, ok, err)
				require.True(t, !ok || write.Sent, err)
			}
		}
		if len(streams) > 0 && streams[len(streams)-1].number == opened {
			require.Error(t, again, "and it stays so")
		}
	}
	// The only permit is free.
	done := false
	_, err = intercept(context.WithoutCancel(ctx), serverStream, nil, method, func(context.Context, *grpc.StreamDesc, *grpc.ClientConn, string, ...grpc.CallOption) (grpc.ClientStream, error) {
		done = true
		return nil, status.Error(codes.NotFound, "")
	})
	require.Equal(t, codes.NotFound, status.Code(err))
	require.True(t, done)
}
