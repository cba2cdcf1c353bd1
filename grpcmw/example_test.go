package grpcmw_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/breaker"
	"github.com/holdfast-go/holdfast/call"
	"github.com/holdfast-go/holdfast/grpcmw"
	"github.com/holdfast-go/holdfast/timeout"
)

// A connection under the standard policy, but for two methods.
func ExampleDialOptions() {
	kit, err := holdfast.New(holdfast.Config{
		Methods: map[string]holdfast.Policy{
			"/shop.v1.Shop/GetItem": {
				Safety:  call.ReadOnly, // may be repeated
				Timeout: &timeout.Limits{Total: 2 * time.Second, Attempt: 500 * time.Millisecond},
			},
			"shop.v1.Reports": {
				Timeout: &timeout.Limits{Total: time.Minute, Attempt: 20 * time.Second},
				Breaker: &breaker.Config{Window: breaker.Window{Span: time.Minute}},
			},
		},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	creds := grpc.WithTransportCredentials(insecure.NewCredentials())
	cc, err := grpc.NewClient("dns:///shop.example.com:443", append(grpcmw.DialOptions(kit), creds)...)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer cc.Close()

	for _, method := range []string{"/shop.v1.Shop/GetItem", "/shop.v1.Shop/PlaceOrder"} {
		e, err := kit.Explain(method)
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Printf("%s: %v, limit of an attempt %v\n", method, e.Safety, e.Policy.Timeout.Attempt)
	}
	// Output:
	// /shop.v1.Shop/GetItem: read_only, limit of an attempt 500ms
	// /shop.v1.Shop/PlaceOrder: unsafe, limit of an attempt 10s
}

// New returns an error where the short forms panic.
func ExampleNew() {
	kit, err := holdfast.New(holdfast.Config{Methods: map[string]holdfast.Policy{"shop.v1.Shop/*": {}}})
	if err != nil {
		fmt.Println(err)
		return
	}
	_, err = grpcmw.New(kit)
	fmt.Println(err)
	// Output:
	// holdfast: Methods["shop.v1.Shop/*"]: is no gRPC name; a method is "/pkg.Service/Method", a service is "pkg.Service"
}

// One call may be made under other terms than its method's.
func ExampleWithOverride() {
	kit, err := holdfast.New(holdfast.Config{})
	if err != nil {
		fmt.Println(err)
		return
	}
	attempts := 0
	down := func(context.Context, string, any, any, *grpc.ClientConn, ...grpc.CallOption) error {
		attempts++
		return status.Error(codes.Unavailable, "down")
	}
	unary := grpcmw.UnaryClientInterceptor(kit)

	// Generated code passes the option on: client.GetItem(ctx, request, option).
	option := grpcmw.WithOverride(holdfast.Override{Safety: call.Idempotent})
	err = unary(context.Background(), "/shop.v1.Shop/GetItem", nil, nil, nil, down, option)
	fmt.Println(attempts, status.Code(err), errors.Is(err, breaker.ErrOpen))
	// Output: 3 Unavailable false
}
