package grpcmw_test

import (
	"context"
	"io"
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
	"github.com/holdfast-go/holdfast/bulkhead"
	"github.com/holdfast-go/holdfast/call"
	"github.com/holdfast-go/holdfast/grpcmw"
	"github.com/holdfast-go/holdfast/timeout"
)

// stream makes a streaming call and returns its error.
func stream(ctx context.Context, cc grpc.ClientConnInterface, desc *grpc.StreamDesc) error {
	s, err := cc.NewStream(ctx, desc, method)
	if err != nil {
		return err
	}
	return toTheEnd(nil, s)
}

// F1: an attempt before the last may have arrived though the last did not: it waited for
// a permit until its caller's deadline.
func TestF1_AStreamThatWasRepeatedMayHaveArrived(t *testing.T) {
	for how, c := range map[string]struct {
		dead bool
		said said
	}{"no attempt was sent": {true, saidUnsent}, "the first was": {false, saidUnknown}} {
		t.Run(how, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				k := newKit(t, with(func(p *holdfast.Policy) {
					p.Safety = call.Idempotent
					p.Bulkhead = &bulkhead.Config{Limit: 1, Queue: 1}
				}))
				s, other := play(t, fail(codes.Unavailable)), play(t, silent)
				s.Wire.Refuse(c.dead)
				cc, beside := s.connect(t, k), other.connect(t, k) // the permits are the target's
				time.AfterFunc(5*time.Millisecond, func() { _, _ = open(t.Context(), beside, bidiStream) })
				ctx, cancel := context.WithTimeout(t.Context(), limit)
				defer cancel()
				err := stream(ctx, cc, serverStream)
				require.Equal(t, codes.DeadlineExceeded, status.Code(err), err)
				require.Equal(t, c.said, saidBy(t, err))
			})
		})
	}
}

// F1, F6: it is said of the whole walk along the upstreams.
func TestF1_AWalkOfAStreamSaysWhetherAnUpstreamGotTheWrite(t *testing.T) {
	for name, c := range map[string]struct {
		first hit // of the first upstream; nil: nobody takes its connection
		open  bool
		code  codes.Code
		is    error
		said  said
	}{
		"all are closed off":        {open: true, code: codes.Unavailable, is: breaker.ErrOpen, said: saidUnsent},
		"none was reached":          {code: codes.DeadlineExceeded, is: timeout.ErrExceeded, said: saidUnsent},
		"the first got it":          {first: fail(codes.Unavailable), code: codes.DeadlineExceeded, is: timeout.ErrExceeded, said: saidUnknown},
		"the first blames the call": {first: fail(codes.Aborted), code: codes.Aborted},
	} {
		for kind, desc := range kinds {
			if c.first != nil && c.code != codes.Aborted && desc.ClientStreams {
				continue // it stays where its message was sent
			}
			t.Run(name+", "+kind, func(t *testing.T) {
				bubble(t, func(t *testing.T) {
					k := newKit(t, with(func(p *holdfast.Policy) { p.Safety = call.Idempotent; oneAttempt(p) }))
					a, b := play(t, messages(1, 0, nil), c.first), play(t, messages(1, 0, nil), silent)
					f := over(t, k, a, b)
					require.NoError(t, stream(t.Context(), f, serverStream))
					breakerOf(t, k, "a").ForceOpen("")
					require.NoError(t, stream(t.Context(), f, serverStream))
					if breakerOf(t, k, "b").ForceOpen(""); !c.open {
						breakerOf(t, k, "a").Reset()
						breakerOf(t, k, "b").Reset()
					}
					for _, s := range []*script{a, b} {
						if s == a && c.first != nil {
							continue
						}
						s.Wire.Hang(true)
						s.Wire.Reset()
					}
					synctest.Wait()
					err := stream(t.Context(), f, desc)
					require.Equal(t, c.code, status.Code(err), err)
					if c.is != nil {
						require.ErrorIs(t, err, c.is)
					}
					require.Equal(t, c.said, saidBy(t, err))
				})
			})
		}
	}
}

// The io.EOF with which SendMsg says that RecvMsg knows the end stays one.
func TestF1_TheEOFOfSendMsgSaysNothingOfTheWrite(t *testing.T) { // D077
	bubble(t, func(t *testing.T) {
		s := play(t, silent)
		cc := s.connect(t, newKit(t, with(func(p *holdfast.Policy) { p.Timeout = &timeout.Limits{FirstMessage: limit} })))
		stream, err := open(t.Context(), cc, bidiStream)
		require.NoError(t, err)
		for err == nil { // until the window is full, and then until the limit passes
			err = stream.SendMsg(wrapperspb.String(string(make([]byte, 1<<16))))
		}
		require.Equal(t, io.EOF, err)
		err = stream.RecvMsg(new(wrapperspb.StringValue))
		require.ErrorIs(t, err, timeout.ErrExceeded)
		require.Equal(t, saidUnknown, saidBy(t, err))
	})
}

// untilOver is a stream whose methods return when its context ends, as other streams than
// gRPC's may.
type untilOver struct{ ctx context.Context }

func (s untilOver) end() error {
	<-s.ctx.Done()
	return status.FromContextError(s.ctx.Err()).Err()
}

func (s untilOver) Header() (metadata.MD, error) { return nil, s.end() }
func (s untilOver) Trailer() metadata.MD         { return nil }
func (s untilOver) CloseSend() error             { return s.end() }
func (s untilOver) Context() context.Context     { return s.ctx }
func (s untilOver) SendMsg(any) error            { return s.end() }
func (s untilOver) RecvMsg(any) error            { return s.end() }

// F1: whichever method finds the end says what became of the write, and is the end: it is
// booked and gives the permit back.
func TestF1_EachMethodSaysWhatBecameOfTheWrite(t *testing.T) { // B1, G3
	for name, use := range map[string]func(grpc.ClientStream) error{
		"RecvMsg":   func(s grpc.ClientStream) error { return s.RecvMsg(new(wrapperspb.StringValue)) },
		"SendMsg":   func(s grpc.ClientStream) error { return s.SendMsg(wrapperspb.String("hello")) },
		"CloseSend": grpc.ClientStream.CloseSend,
		"Header":    func(s grpc.ClientStream) error { _, err := s.Header(); return err },
	} {
		for kind, desc := range kinds {
			t.Run(name+", "+kind, func(t *testing.T) {
				bubble(t, func(t *testing.T) {
					var seen verdicts
					i := grpcmw.StreamClientInterceptor(newKit(t, with(func(p *holdfast.Policy) {
						single(p)
						seen.note(p)
						p.Timeout = &timeout.Limits{FirstMessage: limit}
					})))
					for range 2 { // there is one permit
						ends := 0
						s, err := i(t.Context(), desc, nil, method, func(ctx context.Context, _ *grpc.StreamDesc, _ *grpc.ClientConn, _ string, _ ...grpc.CallOption) (grpc.ClientStream, error) {
							return untilOver{ctx}, nil
						}, grpc.OnFinish(func(error) { ends++ }))
						require.NoError(t, err)
						err = use(s)
						require.ErrorIs(t, err, timeout.ErrExceeded)
						require.Equal(t, codes.DeadlineExceeded, status.Code(err))
						require.Equal(t, saidUnknown, saidBy(t, err))
						require.Equal(t, []call.Class{call.TimedOut}, seen.take())
						require.Equal(t, 1, ends)
					}
				})
			})
		}
	}
}

// deadClose cannot end what it sends.
type deadClose struct{ *fake }

func (deadClose) CloseSend() error { return errDown }

// G3: a stream that fails in CloseSend is opened again like any other, and else the error is
// the caller's.
func TestG3_AFailedCloseSendIsRepeated(t *testing.T) {
	bubble(t, func(t *testing.T) {
		var seen verdicts
		for safety, opens := range map[call.Safety]int{call.ReadOnly: 2, call.Unsafe: 1} {
			i := grpcmw.StreamClientInterceptor(newKit(t, with(func(p *holdfast.Policy) { single(p); seen.note(p); p.Safety = safety })))
			opened := 0
			s, err := i(t.Context(), serverStream, nil, method, func(ctx context.Context, _ *grpc.StreamDesc, _ *grpc.ClientConn, _ string, _ ...grpc.CallOption) (grpc.ClientStream, error) {
				if opened++; opened == 1 {
					return deadClose{&fake{ctx: ctx}}, nil
				}
				return &fake{ctx: ctx, recv: io.EOF}, nil
			})
			require.NoError(t, err)
			require.NoError(t, s.SendMsg(wrapperspb.String("hello")))
			err = s.CloseSend()
			require.Equal(t, opens, opened)
			if safety == call.Unsafe {
				require.Equal(t, errDown, err)
				require.Equal(t, []call.Class{call.Unavailable}, seen.take())
				continue
			}
			require.NoError(t, err)
			require.Equal(t, io.EOF, s.RecvMsg(nil))
			require.Equal(t, []call.Class{call.Unavailable, call.OK}, seen.take())
		}
	})
}

// Two kits, one inside the other: what the inner one has refused was not sent, and that
// is said once.
func TestF1_AKitInsideAnotherSaysItOnce(t *testing.T) {
	bubble(t, func(t *testing.T) {
		outer, inner := newKit(t, policy()), newKit(t, policy())
		s := play(t, messages(1, 0, nil))
		cc := s.Dial(append(grpcmw.DialOptions(outer), grpcmw.DialOptions(inner)...)...)
		_, err := invoke(t.Context(), cc)
		require.NoError(t, err)
		for _, b := range inner.Breakers() {
			b.ForceOpen("")
		}
		_, unary := invoke(t.Context(), cc)
		for _, err := range []error{unary, stream(t.Context(), cc, serverStream), stream(t.Context(), cc, bidiStream)} {
			require.ErrorIs(t, err, breaker.ErrOpen)
			require.Equal(t, codes.Unavailable, status.Code(err))
			require.Equal(t, saidUnsent, saidBy(t, err))
		}
		require.Equal(t, 1, s.hitCount())
	})
}
