package migrate

import (
	"context"
	"database/sql"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/health"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/status"
)

// What was protected before is after: the first answer is a failure, and the
// caller sees the second.

func TestAQuery(t *testing.T) {
	query := func(context.Context) (int, error) { return 42, nil }
	after, err := gobreakerAfter(t.Context(), query)
	require.NoError(t, err)
	for _, count := range []func() (int, error){gobreakerBefore(t.Context(), query), after} {
		n, err := count()
		require.NoError(t, err)
		require.Equal(t, 42, n)
	}
	// An empty result is an answer, however often.
	empty := func(context.Context) (int, error) { return 0, sql.ErrNoRows }
	after, err = gobreakerAfter(t.Context(), empty)
	require.NoError(t, err)
	for _, count := range []func() (int, error){gobreakerBefore(t.Context(), empty), after} {
		for range 20 {
			_, err := count()
			require.ErrorIs(t, err, sql.ErrNoRows)
		}
	}
}

// Five failures in a row, and no fewer, open the circuit before and after.
func TestAQueryThatFails(t *testing.T) {
	began := 0
	down := func(context.Context) (int, error) { began++; return 0, errors.New("down") }
	after, err := gobreakerAfter(t.Context(), down)
	require.NoError(t, err)
	for name, count := range map[string]func() (int, error){"before": gobreakerBefore(t.Context(), down), "after": after} {
		began = 0
		for range 8 {
			_, err := count()
			require.Error(t, err, name)
		}
		require.Equal(t, 5, began, name)
	}
}

func TestAGet(t *testing.T) {
	hits := new(atomic.Int64)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if hits.Add(1)%2 == 1 {
			w.WriteHeader(http.StatusServiceUnavailable)
		}
		_, _ = io.WriteString(w, "answer")
	}))
	defer server.Close()

	kept := retryableBefore()
	require.NoError(t, retryableKept(kept))
	clients := map[string]*http.Client{
		"failsafe before":  failsafeBefore(),
		"retryable before": retryableBefore().StandardClient(),
		"retryable kept":   kept.StandardClient(),
	}
	var err error
	clients["failsafe after"], err = failsafeAfter()
	require.NoError(t, err)
	clients["retryable after"], err = retryableAfter()
	require.NoError(t, err)

	for name, client := range clients {
		before := hits.Load()
		resp, err := client.Get(server.URL)
		require.NoError(t, err, name)
		body, err := io.ReadAll(resp.Body)
		require.NoError(t, err, name)
		require.NoError(t, resp.Body.Close(), name)
		require.Equal(t, http.StatusOK, resp.StatusCode, name)
		require.Equal(t, "answer", string(body), name)
		require.EqualValues(t, 2, hits.Load()-before, name)
	}
}

// blip is a health server whose every first answer is Unavailable.
type blip struct {
	healthpb.HealthServer
	hits atomic.Int64
}

func (b *blip) Check(ctx context.Context, req *healthpb.HealthCheckRequest) (*healthpb.HealthCheckResponse, error) {
	if b.hits.Add(1)%2 == 1 {
		return nil, status.Error(codes.Unavailable, "blip")
	}
	return b.HealthServer.Check(ctx, req)
}

func TestARPC(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	server, service := grpc.NewServer(), &blip{HealthServer: health.NewServer()}
	healthpb.RegisterHealthServer(server, service)
	go func() { _ = server.Serve(listener) }()
	defer server.Stop()

	options := map[string][]grpc.DialOption{
		"middleware before":     middlewareBefore(),
		"service config before": serviceConfigBefore(),
	}
	options["middleware after"], err = middlewareAfter()
	require.NoError(t, err)
	options["service config after"], err = serviceConfigAfter()
	require.NoError(t, err)
	for name, opts := range options {
		before := service.hits.Load()
		conn, err := grpc.NewClient(listener.Addr().String(),
			append(opts, grpc.WithTransportCredentials(insecure.NewCredentials()))...)
		require.NoError(t, err, name)
		reply, err := healthpb.NewHealthClient(conn).Check(t.Context(), &healthpb.HealthCheckRequest{})
		require.NoError(t, err, name)
		require.Equal(t, healthpb.HealthCheckResponse_SERVING, reply.GetStatus(), name)
		require.EqualValues(t, 2, service.hits.Load()-before, name)
		require.NoError(t, conn.Close(), name)
	}
}
