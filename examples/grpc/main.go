// Command grpc puts the kit into a gRPC client. It starts the server that it
// calls, lets it fall silent, and shows what each call comes to.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"log"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/breaker"
	"github.com/holdfast-go/holdfast/examples/internal/shop"
	"github.com/holdfast-go/holdfast/examples/internal/shop/shopv1"
	"github.com/holdfast-go/holdfast/grpcmw"
	"github.com/holdfast-go/holdfast/retry"
	"github.com/holdfast-go/holdfast/timeout"
)

const (
	getItem     = shopv1.Catalog_GetItem_FullMethodName // "/shop.v1.Catalog/GetItem"
	placeOrder  = shopv1.Catalog_PlaceOrder_FullMethodName
	watchPrices = shopv1.Catalog_WatchPrices_FullMethodName
)

func main() {
	log.SetFlags(0)
	flag.Bool("short", false, "changes nothing: it takes a second anyway")
	flag.Parse()
	server := shop.NewGRPC(shop.NewCatalog())
	addr, stop, err := server.Start("127.0.0.1:0")
	if err != nil {
		log.Fatal(err)
	}
	defer stop()

	// From here on it is what an application does.
	kit, err := holdfast.New(holdfast.Config{
		Default: holdfast.Policy{
			Timeout: &timeout.Limits{Total: time.Second, Attempt: 100 * time.Millisecond},
			Breaker: &breaker.Config{Consecutive: 4, Cooldown: 300 * time.Millisecond, ProbeSuccesses: 1},
		},
		Methods: map[string]holdfast.Policy{
			getItem:    {Retry: &retry.Policy{MaxAttempts: 3, Backoff: retry.Backoff{Base: 20 * time.Millisecond}}},
			placeOrder: {Timeout: &timeout.Limits{Total: 200 * time.Millisecond}},
			// A stream may go on for ever, but not be silent for longer than this.
			watchPrices: {Timeout: &timeout.Limits{
				Attempt: 100 * time.Millisecond, FirstMessage: 100 * time.Millisecond, Idle: 150 * time.Millisecond,
			}},
		},
	})
	if err != nil {
		log.Fatal(err)
	}
	creds := grpc.WithTransportCredentials(insecure.NewCredentials())
	conn, err := grpc.NewClient(addr, append(grpcmw.DialOptions(kit), creds)...)
	if err != nil {
		log.Fatal(err)
	}
	defer conn.Close()
	client := shopv1.NewCatalogClient(conn)

	call := func(what string, do func(context.Context) error) error {
		hits, began := server.Hits(), time.Now()
		err := do(context.Background())
		fmt.Printf("%-38s %d sent, %3d ms: %v\n", what, server.Hits()-hits, time.Since(began).Milliseconds(), status.Code(err))
		if err != nil {
			fmt.Printf("    %v\n", err)
		}
		return err
	}
	read := func(opts ...grpc.CallOption) func(context.Context) error {
		return func(ctx context.Context) error {
			_, err := client.GetItem(ctx, &shopv1.GetItemRequest{Id: "lamp"}, opts...)
			return err
		}
	}
	order := func(ctx context.Context) error {
		_, err := client.PlaceOrder(ctx, &shopv1.PlaceOrderRequest{ItemId: "lamp", Quantity: 1})
		return err
	}

	_ = call("a read from a healthy server", read())
	server.Silence(true)
	time.AfterFunc(130*time.Millisecond, func() { server.Silence(false) })
	_ = call("a read in a blip is repeated", read())

	server.Silence(true)
	_ = call("an order in an outage is not", order)
	once := grpcmw.WithOverride(holdfast.Override{Retry: retry.Off()})
	_ = call("nor is a read whose call says so", read(once))
	_ = call("a read gives up when the circuit opens", read())
	err = call("an open circuit refuses at once", read())

	server.Silence(false)
	if open, ok := errors.AsType[*breaker.OpenError](err); ok {
		time.Sleep(open.RetryAfter())
	}
	_ = call("after the cooldown the call is a probe", read())

	server.Silence(true)
	time.AfterFunc(130*time.Millisecond, func() { server.Silence(false) })
	_ = call("a stream is repeated before its start", func(ctx context.Context) error { return watch(ctx, client, 3, func(int) {}) })
	_ = call("one that falls silent later is not", func(ctx context.Context) error {
		return watch(ctx, client, 5, func(n int) { server.Silence(n == 2) })
	})
	server.Silence(false)

	for _, method := range []string{getItem, placeOrder, watchPrices} {
		explanation, err := kit.Explain(method)
		if err != nil {
			log.Fatal(err)
		}
		fmt.Printf("\n%s", explanation)
	}
}
