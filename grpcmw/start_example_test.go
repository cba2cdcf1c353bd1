package grpcmw_test

import (
	"log"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/grpcmw"
)

// The least that a program does; the README shows it whole.
func Example_start() {
	const address = "localhost:50051"

	kit, err := holdfast.New(holdfast.Config{}) // the standard policy
	if err != nil {
		log.Fatal(err)
	}
	creds := grpc.WithTransportCredentials(insecure.NewCredentials())
	conn, err := grpc.NewClient(address, append(grpcmw.DialOptions(kit), creds)...)
	if err != nil {
		log.Fatal(err)
	}
	_ = conn.Close()
	// Output:
}
