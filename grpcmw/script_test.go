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

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/breaker"
	"github.com/holdfast-go/holdfast/bulkhead"
	"github.com/holdfast-go/holdfast/call"
	"github.com/holdfast-go/holdfast/grpcmw"
	"github.com/holdfast-go/holdfast/internal/memnet/memgrpc"
	"github.com/holdfast-go/holdfast/retry"
	"github.com/holdfast-go/holdfast/timeout"
)

const method = "/test.Service/Method"

// hit answers one RPC, whatever its method and kind.
type hit func(s grpc.ServerStream) error

// script is a server that answers the n-th hit as told, the last one for ever.
type script struct {
	*memgrpc.Server

	mu       sync.Mutex
	steps    []hit
	hits     int
	methods  []string
	incoming []metadata.MD
	running  int
	canceled int
}

// play starts a server that follows a script.
func play(t *testing.T, steps ...hit) *script {
	t.Helper()
	s := &script{steps: steps}
	s.Server = memgrpc.Serve(t, func(grpc.ServiceRegistrar) {}, grpc.UnknownServiceHandler(s.handle))
	return s
}

func (s *script) handle(_ any, ss grpc.ServerStream) error {
	s.mu.Lock()
	step := s.steps[min(s.hits, len(s.steps)-1)]
	s.hits++
	s.running++
	name, _ := grpc.MethodFromServerStream(ss)
	s.methods = append(s.methods, name)
	md, _ := metadata.FromIncomingContext(ss.Context())
	s.incoming = append(s.incoming, md)
	s.mu.Unlock()
	defer func() {
		s.mu.Lock()
		s.running--
		if errors.Is(ss.Context().Err(), context.Canceled) {
			s.canceled++
		}
		s.mu.Unlock()
	}()
	return step(ss)
}

func (s *script) hitCount() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.hits
}

func (s *script) runningCount() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.running
}

// connect dials the server through a kit's interceptors.
func (s *script) connect(t *testing.T, k *holdfast.Kit, opts ...grpc.DialOption) *grpc.ClientConn {
	t.Helper()
	return s.Dial(append(grpcmw.DialOptions(k), opts...)...)
}

// say answers a unary request, or ends a stream, with a message.
func say(text string) hit {
	return func(s grpc.ServerStream) error {
		if err := s.RecvMsg(new(wrapperspb.StringValue)); err != nil {
			return err
		}
		return s.SendMsg(wrapperspb.String(text))
	}
}

// fail answers with a status.
func fail(code codes.Code) hit {
	return func(grpc.ServerStream) error { return status.Error(code, "as scripted") }
}

// silent never answers.
func silent(s grpc.ServerStream) error {
	<-s.Context().Done()
	return s.Context().Err()
}

// after answers later than d from now.
func after(d time.Duration, then hit) hit {
	return func(s grpc.ServerStream) error {
		time.Sleep(d)
		return then(s)
	}
}

// messages sends n messages, one each pause, and then ends as told.
func messages(n int, pause time.Duration, end error) hit {
	return func(s grpc.ServerStream) error {
		for i := range n {
			time.Sleep(pause)
			if err := s.SendMsg(wrapperspb.String(string(rune('a' + i)))); err != nil {
				return err
			}
		}
		return end
	}
}

// policy is quick and exact: no jitter, small numbers. Five failures in a row
// open its breaker for a second.
func policy() holdfast.Policy {
	return holdfast.Policy{
		Retry: &retry.Policy{
			MaxAttempts: 3,
			Backoff:     retry.Backoff{Base: 10 * time.Millisecond, Cap: 100 * time.Millisecond, Jitter: retry.NoJitter},
			Budget:      retry.NoBudget(),
		},
		Breaker: &breaker.Config{
			Window: breaker.Window{Calls: 10}, MinCalls: 5, FailureRate: 0.5,
			Cooldown: time.Second, Jitter: breaker.NoJitter, ProbeSuccesses: 1, ProbeTimeout: 200 * time.Millisecond,
		},
		Timeout:  &timeout.Limits{Attempt: 100 * time.Millisecond},
		Bulkhead: &bulkhead.Config{Limit: 10},
	}
}

// with returns the policy after a change.
func with(change func(p *holdfast.Policy)) holdfast.Policy {
	p := policy()
	change(&p)
	return p
}

func readOnly(p *holdfast.Policy) { p.Safety = call.ReadOnly }

func oneAttempt(p *holdfast.Policy) { p.Retry = retry.Off() }

func newKit(t *testing.T, p holdfast.Policy) *holdfast.Kit {
	t.Helper()
	k, err := holdfast.New(holdfast.Config{Default: p})
	require.NoError(t, err)
	return k
}

func invoke(ctx context.Context, cc grpc.ClientConnInterface, opts ...grpc.CallOption) (string, error) {
	return invokeMethod(ctx, cc, method, opts...)
}

func invokeMethod(ctx context.Context, cc grpc.ClientConnInterface, name string, opts ...grpc.CallOption) (string, error) {
	reply := new(wrapperspb.StringValue)
	err := cc.Invoke(ctx, name, wrapperspb.String("hello"), reply, opts...)
	return reply.GetValue(), err
}

var (
	serverStream = &grpc.StreamDesc{ServerStreams: true}
	clientStream = &grpc.StreamDesc{ClientStreams: true}
	bidiStream   = &grpc.StreamDesc{ServerStreams: true, ClientStreams: true}
)

func open(ctx context.Context, cc grpc.ClientConnInterface, desc *grpc.StreamDesc, opts ...grpc.CallOption) (grpc.ClientStream, error) {
	s, err := cc.NewStream(ctx, desc, method, opts...)
	if err != nil || desc.ClientStreams {
		return s, err
	}
	if err := s.SendMsg(wrapperspb.String("hello")); err != nil {
		return nil, err
	}
	return s, s.CloseSend()
}

// readAll reads a stream to its end.
func readAll(s grpc.ClientStream) (texts []string, err error) {
	var first time.Time
	return readAllNoting(s, &first)
}

// readAllNoting is readAll, and notes when the first message came.
func readAllNoting(s grpc.ClientStream, first *time.Time) (texts []string, err error) {
	for {
		m := new(wrapperspb.StringValue)
		if err := s.RecvMsg(m); err != nil {
			if err == io.EOF {
				err = nil
			}
			return texts, err
		}
		if len(texts) == 0 {
			*first = time.Now()
		}
		texts = append(texts, m.GetValue())
	}
}

func bubble(t *testing.T, f func(t *testing.T)) {
	t.Helper()
	synctest.Test(t, f)
}
