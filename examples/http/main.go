// Command http puts the kit into an http.Client. It starts the server that it
// calls, lets it fall silent, and shows what each call comes to.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log"
	"net/http"
	"strings"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/breaker"
	"github.com/holdfast-go/holdfast/examples/internal/shop"
	"github.com/holdfast-go/holdfast/httpmw"
	"github.com/holdfast-go/holdfast/retry"
	"github.com/holdfast-go/holdfast/timeout"
)

func main() {
	log.SetFlags(0)
	flag.Bool("short", false, "changes nothing: it takes a second anyway")
	flag.Parse()
	server := shop.NewHTTP(shop.NewCatalog())
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
			"GET /items/{id}": {Retry: &retry.Policy{MaxAttempts: 3, Backoff: retry.Backoff{Base: 20 * time.Millisecond}}},
			"POST /orders":    {Timeout: &timeout.Limits{Total: 200 * time.Millisecond}},
		},
	})
	if err != nil {
		log.Fatal(err)
	}
	client := &http.Client{Transport: httpmw.NewTransport(nil, kit)}

	call := func(what string, ctx context.Context, method, path, body string) error {
		hits, began := server.Hits(), time.Now()
		req, err := http.NewRequestWithContext(ctx, method, "http://"+addr+path, strings.NewReader(body))
		if err != nil {
			log.Fatal(err)
		}
		resp, err := client.Do(req)
		result := "no answer"
		if err == nil {
			_, _ = io.Copy(io.Discard, resp.Body)
			resp.Body.Close()
			result = resp.Status
		}
		fmt.Printf("%-38s %d sent, %3d ms: %s\n", what, server.Hits()-hits, time.Since(began).Milliseconds(), result)
		if err != nil {
			fmt.Printf("    %v\n", err)
		}
		return err
	}
	ctx := context.Background()
	const order = `{"item_id": "lamp", "quantity": 1}`

	_ = call("a read from a healthy server", ctx, "GET", "/items/lamp", "")
	server.Silence(true)
	time.AfterFunc(130*time.Millisecond, func() { server.Silence(false) })
	_ = call("a read in a blip is repeated", ctx, "GET", "/items/lamp", "")

	server.Silence(true)
	_ = call("an order in an outage is not", ctx, "POST", "/orders", order)
	once := holdfast.WithOverride(ctx, holdfast.Override{Retry: retry.Off()})
	_ = call("nor is a read whose call says so", once, "GET", "/items/lamp", "")
	_ = call("a read gives up when the circuit opens", ctx, "GET", "/items/lamp", "")
	err = call("an open circuit refuses at once", ctx, "GET", "/items/lamp", "")

	server.Silence(false)
	if open, ok := errors.AsType[*breaker.OpenError](err); ok {
		time.Sleep(open.RetryAfter())
	}
	_ = call("after the cooldown the call is a probe", ctx, "GET", "/items/lamp", "")

	for _, method := range []string{"GET /items/lamp", "POST /orders"} {
		explanation, err := kit.Explain(method)
		if err != nil {
			log.Fatal(err)
		}
		fmt.Printf("\n%s", explanation)
	}
}
