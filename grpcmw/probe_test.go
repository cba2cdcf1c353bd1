package grpcmw_test

import (
	"context"
	"flag"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	testpb "google.golang.org/grpc/interop/grpc_testing"
	"google.golang.org/grpc/status"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/breaker"
	"github.com/holdfast-go/holdfast/call"
	"github.com/holdfast-go/holdfast/grpcmw"
	"github.com/holdfast-go/holdfast/retry"
	"github.com/holdfast-go/holdfast/timeout"
)

// seeking opens after three failures, for a cooldown that does not grow, and
// closes after two probes.
func seeking(p *holdfast.Policy) {
	oneAttempt(p)
	p.Breaker = &breaker.Config{
		Consecutive: 3, Cooldown: 5 * time.Second, CooldownFactor: 1, Jitter: breaker.NoJitter,
		ProbeSuccesses: 2, ProbeTimeout: time.Second,
	}
	p.Timeout = &timeout.Limits{Attempt: 2 * time.Second}
}

// Dials are refused for 30 s while a call comes every 100 ms. The circuit is closed
// within a cooldown and two calls of the recovery, where gRPC alone would dial
// again only after 15 s.
func TestG5_AProbeFindsTheServer(t *testing.T) {
	unary := func(ctx context.Context, cc *grpc.ClientConn) error {
		_, err := invoke(ctx, cc)
		return err
	}
	for name, c := range map[string]struct {
		change func(*holdfast.Policy)
		call   func(context.Context, *grpc.ClientConn) error
	}{
		"unary":              {oneAttempt, unary},
		"unary with retries": {func(p *holdfast.Policy) { p.Retry = policy().Retry }, unary},
		"unary, maybe hedged": {func(p *holdfast.Policy) {
			p.Safety, p.Retry = call.ReadOnly, &retry.Policy{Hedge: retry.Hedge{Delay: time.Second}}
		}, unary},
		"stream": {oneAttempt, func(ctx context.Context, cc *grpc.ClientConn) error {
			stream, err := open(ctx, cc, serverStream)
			if err == nil {
				_, err = readAll(stream)
			}
			return err
		}},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				s := play(t, say("there"))
				cc := s.connect(t, newKit(t, with(func(p *holdfast.Policy) { seeking(p); c.change(p) })))
				require.NoError(t, c.call(t.Context(), cc))
				s.Wire.Refuse(true)
				s.Wire.Reset()
				dials := s.Wire.Dials()
				for down := time.Now(); time.Since(down) < 30*time.Second; time.Sleep(100 * time.Millisecond) {
					require.Equal(t, codes.Unavailable, or(codes.Unavailable, codes.DeadlineExceeded, c.call(t.Context(), cc)))
				}
				// A dial for each probe and what gRPC makes while it waits, not one a call.
				require.Less(t, s.Wire.Dials()-dials, 30)

				s.Wire.Refuse(false)
				up := time.Now()
				for c.call(t.Context(), cc) != nil {
					time.Sleep(100 * time.Millisecond)
				}
				require.LessOrEqual(t, time.Since(up), 5*time.Second+100*time.Millisecond)
				for range 20 {
					require.NoError(t, c.call(t.Context(), cc), "it is closed, or closing: no call is refused")
				}
			})
		})
	}
}

// or returns the first code if err has either of the two.
func or(first, second codes.Code, err error) codes.Code {
	if code := status.Code(err); code != second {
		return code
	}
	return first
}

// Only probes wait for a connection, and only probes make it dial anew.
func TestG5_OrdinaryCallsDoNotWait(t *testing.T) {
	bubble(t, func(t *testing.T) {
		s := play(t, say("there"))
		s.Wire.Refuse(true)
		cc := s.connect(t, newKit(t, with(func(p *holdfast.Policy) { oneAttempt(p); p.Breaker = breaker.Off() })))
		for range 100 {
			begin := time.Now()
			_, err := invoke(t.Context(), cc)
			require.Equal(t, codes.Unavailable, status.Code(err))
			require.Zero(t, time.Since(begin))
		}
		require.Equal(t, 1, s.Wire.Dials())
	})
}

// A probe that finds nobody ends at its limit and has failed.
func TestG5_AProbeWaitsNoLongerThanItsLimit(t *testing.T) {
	bubble(t, func(t *testing.T) {
		s := play(t, say("there"))
		s.Wire.Refuse(true)
		cc := s.connect(t, newKit(t, with(seeking)))
		for range 3 {
			_, err := invoke(t.Context(), cc)
			require.Equal(t, codes.Unavailable, status.Code(err))
		}
		time.Sleep(5 * time.Second)
		begin := time.Now()
		_, err := invoke(t.Context(), cc, grpc.WaitForReady(false))
		require.ErrorIs(t, err, timeout.ErrExceeded)
		require.ErrorContains(t, err, "timeout: ProbeTimeout limit of 1s exceeded")
		require.Equal(t, time.Second, time.Since(begin))
		_, err = invoke(t.Context(), cc)
		require.ErrorIs(t, err, breaker.ErrOpen)

		time.Sleep(5 * time.Second)
		begin = time.Now()
		_, err = open(t.Context(), cc, serverStream)
		require.ErrorContains(t, err, "timeout: ProbeTimeout limit of 1s exceeded")
		require.Equal(t, time.Second, time.Since(begin))
	})
}

// An interceptor may be driven by hand, without a connection.
func TestG5_AProbeWithoutAConnection(t *testing.T) {
	bubble(t, func(t *testing.T) {
		interceptor := grpcmw.UnaryClientInterceptor(newKit(t, with(seeking)))
		var end error
		var seen []grpc.CallOption
		pass := make([]grpc.CallOption, 0, 8)
		run := func() error {
			return interceptor(t.Context(), method, nil, nil, nil, func(_ context.Context, _ string, _, _ any, _ *grpc.ClientConn, opts ...grpc.CallOption) error {
				seen = opts
				return end
			}, pass...)
		}
		end = status.Error(codes.Unavailable, "down")
		for range 3 {
			require.Equal(t, end, run())
			require.Empty(t, seen)
		}
		time.Sleep(5 * time.Second)
		end = nil
		require.NoError(t, run())
		require.Equal(t, []grpc.CallOption{grpc.WaitForReady(true)}, seen)
		require.Nil(t, pass[:1][0], "nobody writes behind the end of the caller's slice")
	})
}

var realOutage = flag.Duration("outage", 3*time.Second, "how long the server of the test over real sockets is gone")

// Over real sockets: a server is stopped, and started again where it was. With
// -outage 30s gRPC's own back-off has come to some 15 s.
func TestG5_RealSocketsAServerIsStoppedAndStarted(t *testing.T) {
	t.Parallel()
	outage, cooldown := *realOutage, 300*time.Millisecond
	if testing.Short() {
		outage = time.Second
	}
	l := listen(t)
	address := l.Addr().String()
	start := func(l net.Listener) *grpc.Server {
		s := grpc.NewServer()
		testpb.RegisterTestServiceServer(s, &shop{})
		go func() { _ = s.Serve(l) }() // grpc.ErrServerStopped
		return s
	}
	server := start(l)
	client := testpb.NewTestServiceClient(dial(t, address, with(func(p *holdfast.Policy) {
		seeking(p)
		p.Breaker.Cooldown, p.Breaker.ProbeTimeout = cooldown, 100*time.Millisecond
	})))

	// Four callers call all the time, and note when they are served and when not.
	var served, refused atomic.Int64
	stop := make(chan struct{})
	var callers sync.WaitGroup
	for range 4 {
		callers.Go(func() {
			for {
				select {
				case <-stop:
					return
				case <-time.After(5 * time.Millisecond):
				}
				if _, err := client.EmptyCall(context.Background(), &testpb.Empty{}); err == nil {
					served.Add(1)
				} else {
					refused.Add(1)
				}
			}
		})
	}
	defer callers.Wait()
	defer close(stop)

	require.Eventually(t, func() bool { return served.Load() > 10 }, 10*time.Second, time.Millisecond)
	server.Stop()
	time.Sleep(outage)
	require.Positive(t, refused.Load())

	l, err := net.Listen("tcp", address)
	require.NoError(t, err)
	before, back := served.Load(), time.Now()
	server = start(l)
	defer server.Stop()
	require.Eventually(t, func() bool { return served.Load() > before+10 }, 10*time.Second, time.Millisecond)
	took := time.Since(back)
	t.Logf("served again %v after the server was back", took)
	// A probe under way and its cooldown, two probes, and the machine's own pace;
	// gRPC alone would need as long again as the outage took, or half of it.
	require.Less(t, took, 100*time.Millisecond+cooldown+700*time.Millisecond)
}
