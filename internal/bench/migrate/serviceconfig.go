package migrate

import (
	"google.golang.org/grpc"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/grpcmw"
)

const serviceConfig = `{
  "loadBalancingConfig": [{"round_robin": {}}],
  "methodConfig": [{
    "name": [{"service": "grpc.health.v1.Health"}],
    "timeout": "2s",
    "retryPolicy": {
      "maxAttempts": 3,
      "initialBackoff": "0.05s",
      "maxBackoff": "1s",
      "backoffMultiplier": 2,
      "retryableStatusCodes": ["UNAVAILABLE"]
    }
  }]
}`

func serviceConfigBefore() []grpc.DialOption {
	return []grpc.DialOption{grpc.WithDefaultServiceConfig(serviceConfig)}
}

func serviceConfigAfter() ([]grpc.DialOption, error) {
	read, err := grpcmw.FromServiceConfig(serviceConfig)
	if err != nil {
		return nil, err
	}
	config, err := read.Merge(holdfast.Config{})
	if err != nil {
		return nil, err
	}
	kit, err := holdfast.New(config)
	if err != nil {
		return nil, err
	}
	return append(grpcmw.DialOptions(kit), grpc.WithDefaultServiceConfig(read.Connection)), nil
}
