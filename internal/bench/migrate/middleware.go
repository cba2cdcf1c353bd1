package migrate

import (
	"time"

	grpcretry "github.com/grpc-ecosystem/go-grpc-middleware/v2/interceptors/retry"
	grpctimeout "github.com/grpc-ecosystem/go-grpc-middleware/v2/interceptors/timeout"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/call"
	"github.com/holdfast-go/holdfast/grpcmw"
	"github.com/holdfast-go/holdfast/retry"
	"github.com/holdfast-go/holdfast/timeout"
)

func middlewareBefore() []grpc.DialOption {
	return []grpc.DialOption{grpc.WithChainUnaryInterceptor(
		grpctimeout.UnaryClientInterceptor(2*time.Second),
		grpcretry.UnaryClientInterceptor(
			grpcretry.WithMax(3),
			grpcretry.WithPerRetryTimeout(500*time.Millisecond),
			grpcretry.WithBackoff(grpcretry.BackoffExponentialWithJitter(50*time.Millisecond, 0.5)),
			grpcretry.WithCodes(codes.Unavailable),
		),
	)}
}

func middlewareAfter() ([]grpc.DialOption, error) {
	kit, err := holdfast.New(holdfast.Config{
		Default: holdfast.Policy{
			Timeout: &timeout.Limits{Total: 2 * time.Second, Attempt: 500 * time.Millisecond},
			Retry:   &retry.Policy{MaxAttempts: 3},
		},
		Methods: map[string]holdfast.Policy{
			// Only where the definition does not say so: idempotency_level counts.
			"/grpc.health.v1.Health/Check": {Safety: call.ReadOnly},
		},
	})
	if err != nil {
		return nil, err
	}
	return grpcmw.DialOptions(kit), nil
}
