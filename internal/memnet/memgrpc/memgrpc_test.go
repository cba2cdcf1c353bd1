package memgrpc_test

import (
	"context"
	"strconv"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/health"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/status"

	"github.com/holdfast-go/holdfast/internal/memnet"
	"github.com/holdfast-go/holdfast/internal/memnet/memgrpc"
)

// service is grpc's own health service with a Check that can be made silent.
type service struct {
	*health.Server
	silent bool
}

func (s *service) Check(ctx context.Context, r *healthpb.HealthCheckRequest) (*healthpb.HealthCheckResponse, error) {
	if s.silent {
		<-ctx.Done()
		time.Sleep(time.Minute) // and slow to leave
		return nil, ctx.Err()
	}
	return s.Server.Check(ctx, r)
}

func register(r grpc.ServiceRegistrar) {
	healthpb.RegisterHealthServer(r, &service{Server: health.NewServer()})
}

func registerSilent(r grpc.ServiceRegistrar) {
	healthpb.RegisterHealthServer(r, &service{health.NewServer(), true})
}

func twice(t *testing.T, test func(*testing.T)) {
	for range 2 {
		synctest.Test(t, test)
	}
}

func check(ctx context.Context, cc *grpc.ClientConn, opts ...grpc.CallOption) error {
	_, err := healthpb.NewHealthClient(cc).Check(ctx, &healthpb.HealthCheckRequest{}, opts...)
	return err
}

func TestUnaryAndStream(t *testing.T) {
	twice(t, func(t *testing.T) {
		s, cc := memgrpc.Start(t, register)
		require.NoError(t, check(t.Context(), cc))
		stream, err := healthpb.NewHealthClient(cc).Watch(t.Context(), &healthpb.HealthCheckRequest{})
		require.NoError(t, err)
		m, err := stream.Recv()
		require.NoError(t, err)
		require.Equal(t, healthpb.HealthCheckResponse_SERVING, m.GetStatus())
		require.Equal(t, 1, s.Wire.Accepted())

		// The stream is left open: closing the server ends it.
		s.Close()
		_, err = stream.Recv()
		require.Error(t, err)
	})
}

func TestADeadlineOverASilentWire(t *testing.T) {
	twice(t, func(t *testing.T) {
		s, cc := memgrpc.Start(t, register)
		require.NoError(t, check(t.Context(), cc))
		s.Wire.Silence(true)
		ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
		defer cancel()
		begin := time.Now()
		require.Equal(t, codes.DeadlineExceeded, status.Code(check(ctx, cc)))
		require.Equal(t, 30*time.Second, time.Since(begin))
		s.Wire.Silence(false)
		require.NoError(t, check(t.Context(), cc))
	})
}

func TestRefusalAndRecovery(t *testing.T) {
	twice(t, func(t *testing.T) {
		s, cc := memgrpc.Start(t, register)
		s.Wire.Refuse(true)
		err := check(t.Context(), cc)
		require.Equal(t, codes.Unavailable, status.Code(err))
		require.ErrorContains(t, err, "connection refused")
		s.Wire.Refuse(false)
		require.NoError(t, check(t.Context(), cc, grpc.WaitForReady(true)))
	})
}

func TestResetMidCall(t *testing.T) {
	twice(t, func(t *testing.T) {
		s, cc := memgrpc.Start(t, registerSilent)
		go func() {
			time.Sleep(time.Second)
			s.Wire.Reset()
		}()
		require.Equal(t, codes.Unavailable, status.Code(check(t.Context(), cc)))
	})
}

func TestSeveralConnections(t *testing.T) {
	twice(t, func(t *testing.T) {
		s := memgrpc.Serve(t, register)
		for i := range 3 {
			cc := s.Dial(grpc.WithUserAgent(strconv.Itoa(i)))
			require.NoError(t, check(t.Context(), cc))
		}
		require.Equal(t, 3, s.Wire.Open())
	})
}

func TestClosingCutsARawConnection(t *testing.T) {
	twice(t, func(t *testing.T) {
		s := memgrpc.Serve(t, register)
		conn, err := s.Wire.Dial()
		require.NoError(t, err)
		go func() { _, err = conn.Read(make([]byte, 1)) }()
		s.Wire.Silence(true)
		synctest.Wait()
		s.Close()
		synctest.Wait()
		require.ErrorIs(t, err, syscall.ECONNRESET)
	})
}

func TestTLS(t *testing.T) {
	twice(t, func(t *testing.T) {
		cert, roots, err := memnet.Certificate(memnet.Host)
		require.NoError(t, err)
		s := memgrpc.Serve(t, register, grpc.Creds(credentials.NewServerTLSFromCert(&cert)))
		cc := s.Dial(grpc.WithTransportCredentials(credentials.NewClientTLSFromCert(roots, "")))
		require.NoError(t, check(t.Context(), cc))
	})
}

// A test may leave at any moment.
func TestClosingEndsWhateverIsStillGoingOn(t *testing.T) {
	for name, trouble := range map[string]func(*memnet.Listener){
		"none": func(*memnet.Listener) {}, "silence": func(l *memnet.Listener) { l.Silence(true) },
		"refused": func(l *memnet.Listener) { l.Refuse(true) }, "hanging": func(l *memnet.Listener) { l.Hang(true) },
	} {
		for when, before := range map[string]bool{"before": true, "during": false} {
			t.Run(name+" "+when, func(t *testing.T) {
				twice(t, func(t *testing.T) {
					s, cc := memgrpc.Start(t, registerSilent)
					if before {
						trouble(s.Wire)
					}
					for range 3 {
						go func() { _ = check(context.Background(), cc, grpc.WaitForReady(true)) }()
					}
					synctest.Wait()
					if !before {
						trouble(s.Wire)
					}
				})
			})
		}
	}
}
