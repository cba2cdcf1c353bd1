package grpcmw_test

import (
	"context"
	"fmt"
	"log"
	"net"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/health"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/call"
	"github.com/holdfast-go/holdfast/grpcmw"
)

func ExampleFailover() {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		log.Fatal(err)
	}
	server := grpc.NewServer()
	healthpb.RegisterHealthServer(server, health.NewServer())
	go func() { _ = server.Serve(listener) }()
	defer server.Stop()
	creds := grpc.WithTransportCredentials(insecure.NewCredentials())
	eu, err := grpc.NewClient("127.0.0.1:1", creds) // nobody listens there
	if err != nil {
		log.Fatal(err)
	}
	defer eu.Close()
	us, err := grpc.NewClient(listener.Addr().String(), creds)
	if err != nil {
		log.Fatal(err)
	}
	defer us.Close()
	ctx := context.Background()

	kit, err := holdfast.New(holdfast.Config{
		Methods: map[string]holdfast.Policy{"/grpc.health.v1.Health/Check": {Safety: call.ReadOnly}},
	})
	if err != nil {
		log.Fatal(err)
	}
	conn, err := grpcmw.Failover(kit, []grpcmw.Upstream{
		{Name: "eu", Conn: eu},
		{Name: "us", Conn: us},
	})
	if err != nil {
		log.Fatal(err)
	}
	client := healthpb.NewHealthClient(conn) // any generated client

	var upstream string
	reply, err := client.Check(ctx, &healthpb.HealthCheckRequest{}, grpcmw.ReportUpstream(&upstream))
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(upstream, "answered:", reply.GetStatus())
	// Output: us answered: SERVING
}
