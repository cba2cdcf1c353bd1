package grpcmw_test

import (
	"fmt"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/breaker"
	"github.com/holdfast-go/holdfast/grpcmw"
)

// A service config that gRPC has used so far becomes the kit's policies; what is not
// a policy stays with gRPC.
func ExampleFromServiceConfig() {
	s, err := grpcmw.FromServiceConfig(`{
		"loadBalancingConfig": [{"round_robin": {}}],
		"methodConfig": [{
			"name": [{"service": "shop.v1.Orders"}],
			"timeout": "2s",
			"waitForReady": true,
			"retryPolicy": {
				"maxAttempts": 3, "initialBackoff": "0.1s", "maxBackoff": "1s", "backoffMultiplier": 2,
				"retryableStatusCodes": ["UNAVAILABLE", "ABORTED"]
			}
		}]
	}`)
	if err != nil {
		fmt.Println(err)
		return
	}
	config, err := s.Merge(holdfast.Config{Name: "orders", Default: holdfast.Policy{Breaker: &breaker.Config{Consecutive: 5}}})
	if err != nil {
		fmt.Println(err)
		return
	}
	kit, err := holdfast.New(config)
	if err != nil {
		fmt.Println(err)
		return
	}
	cc, err := grpc.NewClient("dns:///orders.example.com", append(grpcmw.DialOptions(kit),
		grpc.WithDefaultServiceConfig(s.Connection), grpc.WithTransportCredentials(insecure.NewCredentials()))...)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer func() { _ = cc.Close() }()

	p := config.Methods["shop.v1.Orders"]
	fmt.Println(p.Safety, p.Retry.MaxAttempts, p.Timeout.Total)
	fmt.Println(s.Connection)

	// A typing error, or what gRPC would pass over, has a place.
	_, err = grpcmw.FromServiceConfig(`{"methodConfig": [{"name": [{}], "timeout": "2 s"}]}`)
	fmt.Println(err)
	// Output:
	// idempotent 3 2s
	// {"loadBalancingConfig":[{"round_robin":{}}],"methodConfig":[{"name":[{"service":"shop.v1.Orders"}],"timeout":"2s","waitForReady":true}]}
	// grpcmw: service config: methodConfig[0].timeout = "2 s": must be a length of time above 0 in seconds, such as "1.5s"
}
