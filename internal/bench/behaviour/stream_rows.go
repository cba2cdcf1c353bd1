package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"sync/atomic"
	"time"

	middlewareretry "github.com/grpc-ecosystem/go-grpc-middleware/v2/interceptors/retry"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/call"
	"github.com/holdfast-go/holdfast/grpcmw"
	"github.com/holdfast-go/holdfast/internal/memnet"
	"github.com/holdfast-go/holdfast/retry"
)

const watch = "/demo.Demo/Watch"

// streamRows are of gRPC server streams that may be repeated.
func streamRows() []row {
	r := row{name: "duplicate stream messages", asks: "a server stream of three breaks off with Unavailable after the second message, the first time"}
	for _, c := range []struct {
		name string
		dial func() ([]grpc.DialOption, error)
	}{
		{"holdfast", func() ([]grpc.DialOption, error) {
			kit, err := holdfast.New(holdfast.Config{Default: holdfast.Policy{
				Safety: call.ReadOnly, Retry: &retry.Policy{MaxAttempts: 3, Backoff: retry.Backoff{Base: time.Millisecond}},
			}})
			return grpcmw.DialOptions(kit), err
		}},
		// https://pkg.go.dev/github.com/grpc-ecosystem/go-grpc-middleware/v2/interceptors/retry#StreamClientInterceptor
		{"go-grpc-middleware", func() ([]grpc.DialOption, error) {
			return []grpc.DialOption{grpc.WithChainStreamInterceptor(middlewareretry.StreamClientInterceptor(
				middlewareretry.WithMax(3), middlewareretry.WithBackoff(middlewareretry.BackoffLinear(time.Millisecond)),
			))}, nil
		}},
		// https://grpc.io/docs/guides/retry/
		{"grpc-go's service config", func() ([]grpc.DialOption, error) {
			return []grpc.DialOption{grpc.WithDefaultServiceConfig(`{"methodConfig": [{"name": [{}], "retryPolicy": {
				"maxAttempts": 3, "initialBackoff": "0.001s", "maxBackoff": "0.001s", "backoffMultiplier": 1, "retryableStatusCodes": ["UNAVAILABLE"]}}]}`)}, nil
		}},
	} {
		r.cells = append(r.cells, cell{c.name, func() (string, error) {
			dial, err := c.dial()
			if err != nil {
				return "", err
			}
			return duplicates(dial)
		}})
	}
	return []row{r}
}

func duplicates(dial []grpc.DialOption) (string, error) {
	var streams atomic.Int64
	l := memnet.Listen(memnet.Host + ":443")
	s := grpc.NewServer(grpc.UnknownServiceHandler(func(_ any, stream grpc.ServerStream) error {
		n := streams.Add(1)
		if err := stream.RecvMsg(new(wrapperspb.StringValue)); err != nil {
			return err
		}
		for i := range 3 {
			if i == 2 && n == 1 {
				return status.Error(codes.Unavailable, "breaks off")
			}
			if err := stream.SendMsg(wrapperspb.Int32(int32(i + 1))); err != nil {
				return err
			}
		}
		return nil
	}))
	go func() { _ = s.Serve(l) }() // until the process ends
	cc, err := grpc.NewClient("passthrough:///"+memnet.Host, append(dial,
		grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithContextDialer(func(ctx context.Context, address string) (net.Conn, error) { return l.DialContext(ctx, "tcp", address) }))...)
	if err != nil {
		return "", err
	}
	stream, err := cc.NewStream(context.Background(), &grpc.StreamDesc{ServerStreams: true}, watch)
	if err != nil {
		return "", err
	}
	if err := errors.Join(stream.SendMsg(wrapperspb.String("all")), stream.CloseSend()); err != nil {
		return "", err
	}
	var got []string
	for {
		m := new(wrapperspb.Int32Value)
		err := stream.RecvMsg(m)
		if err == nil {
			got = append(got, fmt.Sprint(m.GetValue()))
			continue
		}
		end := status.Code(err).String()
		if err == io.EOF {
			end = "the end"
		}
		return fmt.Sprintf("the caller got %s, then %s; %s opened", strings.Join(got, " "), end, count(streams.Load(), "stream")), nil
	}
}
