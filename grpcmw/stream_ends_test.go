package grpcmw_test

import (
	"context"
	"io"
	"runtime"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/breaker"
	"github.com/holdfast-go/holdfast/bulkhead"
	"github.com/holdfast-go/holdfast/call"
)

func TestD077_EOFIsTheNormalEnd(t *testing.T) {
	bubble(t, func(t *testing.T) {
		var seen verdicts
		s := play(t, messages(2, 0, nil))
		cc := s.connect(t, newKit(t, with(seen.note)))
		for range 20 {
			stream, err := open(t.Context(), cc, serverStream)
			require.NoError(t, err)
			_, err = readAll(stream)
			require.NoError(t, err)
			require.ErrorIs(t, stream.RecvMsg(new(wrapperspb.StringValue)), io.EOF)
		}
		classes := seen.take()
		require.Len(t, classes, 20)
		for _, class := range classes {
			require.Equal(t, call.OK, class)
		}
	})
}

func TestD077_EOFFromSendMsgMeansAskRecvMsg(t *testing.T) {
	bubble(t, func(t *testing.T) {
		var seen verdicts
		s := play(t, fail(codes.Unavailable))
		cc := s.connect(t, newKit(t, with(func(p *holdfast.Policy) { single(p); seen.note(p) })))
		for range 3 {
			stream, err := open(t.Context(), cc, bidiStream)
			require.NoError(t, err)
			synctest.Wait()
			for err == nil {
				err = stream.SendMsg(wrapperspb.String("x"))
				synctest.Wait()
			}
			require.Equal(t, io.EOF, err)
			require.Empty(t, seen.take(), "not yet the end")
			err = stream.RecvMsg(new(wrapperspb.StringValue))
			require.Equal(t, codes.Unavailable, status.Code(err))
			require.Equal(t, []call.Class{call.Unavailable}, seen.take())
		}
	})
}

// Each way a stream may end gives its permit back and books one result.
func TestD078_EveryEndReleasesThePermit(t *testing.T) { // B1, G3
	type ended struct {
		cc     *grpc.ClientConn
		stream grpc.ClientStream
		cancel context.CancelFunc
	}
	recv := func(s grpc.ClientStream) error { return s.RecvMsg(new(wrapperspb.StringValue)) }
	for name, c := range map[string]struct {
		desc   *grpc.StreamDesc
		answer hit
		end    func(t *testing.T, e ended)
		class  call.Class
	}{
		"EOF": {serverStream, messages(0, 0, nil), func(t *testing.T, e ended) {
			require.Equal(t, io.EOF, recv(e.stream))
		}, call.OK},
		"error from RecvMsg": {serverStream, messages(0, 0, errDown), func(t *testing.T, e ended) {
			require.Equal(t, codes.Unavailable, status.Code(recv(e.stream)))
		}, call.Unavailable},
		"the only message": {clientStream, messages(1, 0, nil), func(t *testing.T, e ended) {
			require.NoError(t, e.stream.CloseSend())
			require.NoError(t, recv(e.stream))
		}, call.OK},
		"a failure instead of the only message": {clientStream, messages(0, 0, errDown), func(t *testing.T, e ended) {
			require.NoError(t, e.stream.CloseSend())
			require.Equal(t, codes.Unavailable, status.Code(recv(e.stream)))
		}, call.Unavailable},
		"a failure after the only message": {clientStream, messages(1, 0, errDown), func(t *testing.T, e ended) {
			require.Equal(t, codes.Unavailable, status.Code(recv(e.stream)))
		}, call.Unavailable},
		"error from SendMsg": {bidiStream, silent, func(t *testing.T, e ended) {
			require.Equal(t, codes.Internal, status.Code(e.stream.SendMsg(7)))
		}, call.Permanent},
		"header of a failed stream": {bidiStream, fail(codes.Unavailable), func(t *testing.T, e ended) {
			md, err := e.stream.Header()
			require.NoError(t, err)
			require.Nil(t, md)
			require.Equal(t, codes.Unavailable, status.Code(recv(e.stream)))
		}, call.Unavailable},
		"header of an empty stream": {bidiStream, messages(0, 0, nil), func(t *testing.T, e ended) {
			_, err := e.stream.Header()
			require.NoError(t, err)
		}, call.OK},
		"the caller cancels, nobody reading": {bidiStream, silent, func(t *testing.T, e ended) {
			e.cancel()
		}, call.Canceled},
		"the caller cancels after a message": {serverStream, messages(10, time.Millisecond, nil), func(t *testing.T, e ended) {
			require.NoError(t, recv(e.stream))
			e.cancel()
		}, call.Canceled},
		"the caller cancels while reading": {bidiStream, silent, func(t *testing.T, e ended) {
			time.AfterFunc(time.Millisecond, e.cancel)
			err := recv(e.stream)
			require.Equal(t, codes.Canceled, status.Code(err))
			require.ErrorIs(t, err, context.Canceled)
		}, call.Canceled},
		"the caller cancels while sending": {bidiStream, silent, func(t *testing.T, e ended) {
			time.AfterFunc(time.Millisecond, e.cancel)
			var err error
			for err == nil { // until the window is full
				err = e.stream.SendMsg(wrapperspb.String(string(make([]byte, 1<<16))))
			}
			require.Equal(t, io.EOF, err)
		}, call.Canceled},
		"the caller's deadline, nobody reading": {bidiStream, silent, func(t *testing.T, e ended) {
			time.Sleep(time.Hour)
		}, call.Canceled},
		"the caller's deadline while reading": {bidiStream, silent, func(t *testing.T, e ended) {
			require.Equal(t, codes.DeadlineExceeded, status.Code(recv(e.stream)))
		}, call.TimedOut},
		"the connection is closed, nobody reading": {bidiStream, silent, func(t *testing.T, e ended) {
			require.NoError(t, e.cc.Close())
		}, call.Permanent},
		"the server failed, nobody read it": {bidiStream, fail(codes.Unavailable), func(t *testing.T, e ended) {
			synctest.Wait()
			e.cancel()
			synctest.Wait()
			require.Equal(t, codes.Unavailable, status.Code(recv(e.stream)), "it is still told to who asks late")
		}, call.Canceled},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				var seen verdicts
				s := play(t, c.answer)
				k := newKit(t, with(func(p *holdfast.Policy) { single(p); seen.note(p) }))
				cc := s.connect(t, k)
				ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
				defer cancel()
				ends := 0
				stream, err := open(ctx, cc, c.desc, grpc.OnFinish(func(error) { ends++ }))
				require.NoError(t, err)
				other := s.connect(t, k) // the kit's permits are the target's, not the connection's
				_, err = open(t.Context(), other, c.desc)
				require.ErrorIs(t, err, bulkhead.ErrFull)
				require.Equal(t, codes.ResourceExhausted, status.Code(err))

				c.end(t, ended{cc, stream, cancel})
				synctest.Wait()
				require.Equal(t, []call.Class{c.class}, seen.take())
				require.Equal(t, 1, ends)
				next, err := open(t.Context(), other, c.desc)
				require.NoError(t, err, "the permit is free")

				// Whatever is still done to the ended stream changes nothing.
				_ = recv(stream)
				_, _ = stream.Header()
				_ = stream.CloseSend()
				cancel()
				synctest.Wait()
				require.Empty(t, seen.take())
				require.Equal(t, 1, ends)
				_, err = open(t.Context(), other, c.desc)
				require.ErrorIs(t, err, bulkhead.ErrFull, "D056: nor does it free another's permit")
				runtime.KeepAlive(next)
			})
		})
	}
}

// Callers who walk away from their streams leave nothing behind. The bubble is
// the check for goroutines; the server sees every stream end.
func TestD078_ThousandsOfAbandonedStreams(t *testing.T) {
	bubble(t, func(t *testing.T) {
		s := play(t, messages(10, time.Millisecond, nil))
		cc := s.connect(t, newKit(t, policy()))
		for i := range 5000 {
			ctx, cancel := context.WithCancel(t.Context())
			stream, err := open(ctx, cc, serverStream)
			require.NoError(t, err)
			if i%2 == 0 {
				require.NoError(t, stream.RecvMsg(new(wrapperspb.StringValue)))
			}
			cancel()
			if i%8 == 7 {
				synctest.Wait() // ten may be open at once
			}
		}
		time.Sleep(time.Second) // the handlers sleep a little themselves
		require.Zero(t, s.runningCount())
		stream, err := open(t.Context(), cc, serverStream)
		require.NoError(t, err, "and the breaker is closed")
		_, err = readAll(stream)
		require.NoError(t, err)
	})
}

// A refused stream tells the caller's OnFinish too.
func TestOnFinishOfARefusedStream(t *testing.T) {
	bubble(t, func(t *testing.T) {
		s := play(t, silent)
		cc := s.connect(t, newKit(t, with(single)))
		_, err := open(t.Context(), cc, bidiStream)
		require.NoError(t, err)
		var told error
		_, err = open(t.Context(), cc, bidiStream, grpc.OnFinish(func(err error) { told = err }))
		require.ErrorIs(t, err, bulkhead.ErrFull)
		require.Equal(t, err, told)
	})
}

// Sender, reader and canceller of a stream are different goroutines; whatever
// comes first ends it once, and all permits are there in the end.
func TestD056_EndsThatRaceReleaseOnce(t *testing.T) {
	bubble(t, func(t *testing.T) {
		s := play(t, messages(3, time.Millisecond, nil), messages(2, time.Millisecond, errDown))
		var seen verdicts
		cc := s.connect(t, newKit(t, with(func(p *holdfast.Policy) { seen.note(p); p.Breaker = breaker.Off() })))
		const rounds = 300
		for i := range rounds {
			ctx, cancel := context.WithCancel(t.Context())
			stream, err := open(ctx, cc, bidiStream)
			require.NoError(t, err)
			var done sync.WaitGroup
			done.Go(func() {
				for stream.SendMsg(wrapperspb.String("x")) == nil {
					time.Sleep(time.Millisecond)
				}
			})
			done.Go(func() { _, _ = readAll(stream) })
			done.Go(func() { _, _ = stream.Header(); _ = stream.Context().Err() })
			time.AfterFunc(time.Duration(i%5)*time.Millisecond, cancel)
			done.Wait()
			cancel()
			synctest.Wait()
		}
		require.Len(t, seen.take(), rounds)
		for range 10 {
			_, err := open(t.Context(), cc, bidiStream)
			require.NoError(t, err)
		}
		_, err := open(t.Context(), cc, bidiStream)
		require.ErrorIs(t, err, bulkhead.ErrFull)
	})
}
