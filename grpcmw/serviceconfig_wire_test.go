package grpcmw_test

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/breaker"
	"github.com/holdfast-go/holdfast/grpcmw"
	"github.com/holdfast-go/holdfast/retry"
	"github.com/holdfast-go/holdfast/timeout"
)

// configured dials the server as a service config says.
func (s *script) configured(t *testing.T, text string, base holdfast.Config) *grpc.ClientConn {
	t.Helper()
	config, err := grpcmw.FromServiceConfig(text)
	require.NoError(t, err)
	base, err = config.Merge(base)
	require.NoError(t, err)
	k, err := holdfast.New(base)
	require.NoError(t, err)
	opts := grpcmw.DialOptions(k)
	if config.Connection != "" {
		opts = append(opts, grpc.WithDefaultServiceConfig(config.Connection))
	}
	return s.Dial(opts...)
}

const quickRetries = `"retryPolicy": {"maxAttempts": 3, "initialBackoff": "0.01s", "maxBackoff": "0.1s", "backoffMultiplier": 2, "retryableStatusCodes": ["UNAVAILABLE", "ABORTED", "INTERNAL"]}`

// A retryPolicy says what is repeated: the codes it lists, and no other.
func TestG2_TheListedCodesAreRepeated(t *testing.T) {
	for code := codes.Canceled; code <= codes.Unauthenticated; code++ {
		t.Run(code.String(), func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				s := play(t, fail(code))
				cc := s.configured(t, methods(entry(quickRetries)), holdfast.Config{Default: holdfast.Policy{Breaker: breaker.Off()}})
				_, err := invoke(t.Context(), cc)
				require.Equal(t, code, status.Code(err))
				want := 1
				switch code {
				case codes.Unavailable, codes.Aborted, codes.Internal:
					want = 3
				}
				require.Equal(t, want, s.hitCount())

				_, err = invokeMethod(t.Context(), cc, "/test.Other/Method")
				require.Equal(t, code, status.Code(err))
				require.Equal(t, want+1, s.hitCount(), "nothing allows this one")
			})
		})
	}
}

// One of them that stands for a fault of the client's stays a sign of life.
func TestB3_AListedClientFaultIsNoFailure(t *testing.T) {
	bubble(t, func(t *testing.T) {
		s := play(t, fail(codes.Aborted))
		cc := s.configured(t, methods(entry(quickRetries)), holdfast.Config{Default: holdfast.Policy{Breaker: &breaker.Config{Consecutive: 2}}})
		for range 5 {
			_, err := invoke(t.Context(), cc)
			require.Equal(t, codes.Aborted, status.Code(err))
			require.NotErrorIs(t, err, breaker.ErrOpen)
		}
		require.Equal(t, 15, s.hitCount())
	})
}

// A dial that is refused ends the call if its code is not listed.
func TestTheListHoldsForWhatWasNotSentToo(t *testing.T) {
	bubble(t, func(t *testing.T) {
		s := play(t, say(""))
		s.Wire.Refuse(true)
		time.AfterFunc(5*time.Millisecond, func() { s.Wire.Refuse(false) })
		text := `"retryPolicy": {"maxAttempts": 3, "initialBackoff": "2s", "maxBackoff": "2s", "backoffMultiplier": 1, "retryableStatusCodes": ["INTERNAL"]}`
		_, err := invoke(t.Context(), s.configured(t, methods(entry(text)), holdfast.Config{}))
		require.Equal(t, codes.Unavailable, status.Code(err))
		require.Zero(t, s.hitCount())
	})
}

func TestTheTimeoutOfAServiceConfig(t *testing.T) {
	bubble(t, func(t *testing.T) {
		s := play(t, silent)
		cc := s.configured(t, methods(entry(`"timeout": "0.3s"`)), holdfast.Config{})
		begin := time.Now()
		_, err := invoke(t.Context(), cc)
		require.ErrorIs(t, err, timeout.ErrExceeded)
		require.Equal(t, 300*time.Millisecond, time.Since(begin))

		// For a stream gRPC does it: it bounds the whole of it.
		begin = time.Now()
		stream, err := open(t.Context(), cc, serverStream)
		require.NoError(t, err)
		_, err = readAll(stream)
		require.Equal(t, codes.DeadlineExceeded, status.Code(err))
		require.Equal(t, 300*time.Millisecond, time.Since(begin))
	})
}

// waitForReady holds for the methods that it names; a call option outranks it.
func TestWaitForReadyOfAServiceConfig(t *testing.T) {
	bubble(t, func(t *testing.T) {
		s := play(t, say("there"))
		s.Wire.Refuse(true)
		time.AfterFunc(3*time.Second, func() { s.Wire.Refuse(false) })
		cc := s.configured(t, methods(entry(`"waitForReady": true`), `{"name": [{"service": "test.Service", "method": "Hasty"}]}`), holdfast.Config{})
		_, err := invokeMethod(t.Context(), cc, "/test.Service/Hasty")
		require.Equal(t, codes.Unavailable, status.Code(err))
		_, err = invoke(t.Context(), cc, grpc.WaitForReady(false))
		require.Equal(t, codes.Unavailable, status.Code(err))
		got, err := invoke(t.Context(), cc)
		require.NoError(t, err)
		require.Equal(t, "there", got)
	})
}

// A code that is fatal ends the call, or once a hedge was sent sends no further one.
func TestR10_HedgesOfAServiceConfig(t *testing.T) {
	text := `"hedgingPolicy": {"maxAttempts": 3, "hedgingDelay": "0.1s", "nonFatalStatusCodes": ["UNAVAILABLE"]}`
	for name, c := range map[string]struct {
		steps []hit
		code  codes.Code
		hits  int
		took  time.Duration
	}{
		"the first in time": {[]hit{after(50*time.Millisecond, say("first"))}, codes.OK, 1, 50 * time.Millisecond},
		"the third":         {[]hit{silent, silent, say("third")}, codes.OK, 3, 200 * time.Millisecond},
		"not fatal":         {[]hit{fail(codes.Unavailable), fail(codes.Unavailable), say("third")}, codes.OK, 3, 0},
		"fatal":             {[]hit{fail(codes.Internal), say("second")}, codes.Internal, 1, 0},
		"fatal, a hedge":    {[]hit{after(500*time.Millisecond, say("first")), fail(codes.Internal), say("third")}, codes.OK, 2, 500 * time.Millisecond},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				s := play(t, c.steps...)
				cc := s.configured(t, methods(entry(text)), holdfast.Config{})
				begin := time.Now()
				_, err := invoke(t.Context(), cc)
				require.Equal(t, c.code, status.Code(err))
				require.Equal(t, c.took, time.Since(begin))
				require.Equal(t, c.hits, s.hitCount())
			})
		})
	}
}

// The budget of a retryThrottling is one for all methods of a target.
func TestR6_RetryThrottlingIsOneBudget(t *testing.T) {
	bubble(t, func(t *testing.T) {
		var healthy atomic.Bool
		s := play(t, func(ss grpc.ServerStream) error {
			if healthy.Load() {
				return say("")(ss)
			}
			return status.Error(codes.Unavailable, "as scripted")
		})
		other := `{"name": [{"service": "test.Other"}], ` + quickRetries + `}`
		text := `{"retryThrottling": {"maxTokens": 10, "tokenRatio": 0.5}, ` + methods(entry(quickRetries), other)[1:]
		cc := s.configured(t, text, holdfast.Config{Default: holdfast.Policy{Breaker: breaker.Off()}})
		round := func() (hits int, err error) {
			before := s.hitCount()
			for range 10 {
				_, _ = invoke(context.Background(), cc) // fails, mostly
				_, err = invokeMethod(context.Background(), cc, "/test.Other/Method")
			}
			return s.hitCount() - before, err
		}
		hits, err := round()
		require.Equal(t, 20+5, hits, "half of maxTokens")
		require.ErrorIs(t, err, retry.ErrBudget)

		healthy.Store(true)
		for range 4 {
			_, err := invoke(t.Context(), cc)
			require.NoError(t, err)
		}
		healthy.Store(false)
		hits, _ = round()
		require.Equal(t, 20+2, hits, "four successes earn two")
	})
}

// gRPC's own retries are off although it is given the whole config: they would be
// made inside each of the kit's attempts.
func TestGRPCsOwnRetriesAreOff(t *testing.T) {
	text := methods(entry(quickRetries))
	for name, c := range map[string]struct {
		options func(*holdfast.Kit) []grpc.DialOption
		hits    int
	}{
		"with the kit": {func(k *holdfast.Kit) []grpc.DialOption { return grpcmw.DialOptions(k) }, 3},
		"the kit's interceptors alone": {func(k *holdfast.Kit) []grpc.DialOption {
			return []grpc.DialOption{grpc.WithChainUnaryInterceptor(grpcmw.UnaryClientInterceptor(k))}
		}, 9},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				s := play(t, fail(codes.Unavailable))
				k := newKit(t, with(func(p *holdfast.Policy) { readOnly(p); p.Breaker = breaker.Off(); p.Timeout = timeout.Off() }))
				cc := s.Dial(append(c.options(k), grpc.WithDefaultServiceConfig(text))...)
				_, err := invoke(t.Context(), cc)
				require.Equal(t, codes.Unavailable, status.Code(err))
				require.Equal(t, c.hits, s.hitCount())
			})
		})
	}
}
