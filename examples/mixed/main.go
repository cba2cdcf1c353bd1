// Command mixed is a service that calls two dependencies over two wires, each with
// a kit of its own, within one deadline of its caller's. It starts both servers and
// lets one of them fall silent: what the other one answers is not held up.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log"
	"net/http"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/breaker"
	"github.com/holdfast-go/holdfast/bulkhead"
	"github.com/holdfast-go/holdfast/examples/internal/shop"
	"github.com/holdfast-go/holdfast/examples/internal/shop/shopv1"
	"github.com/holdfast-go/holdfast/fallback"
	"github.com/holdfast-go/holdfast/grpcmw"
	"github.com/holdfast-go/holdfast/httpmw"
	"github.com/holdfast-go/holdfast/timeout"
)

// careful is what both dependencies have in common. A policy is data: each kit
// makes breakers and bulkheads of its own from it.
var careful = holdfast.Policy{
	Timeout:  &timeout.Limits{Total: 300 * time.Millisecond, Attempt: 100 * time.Millisecond},
	Breaker:  &breaker.Config{Consecutive: 3, Cooldown: 300 * time.Millisecond, ProbeSuccesses: 1},
	Bulkhead: &bulkhead.Config{Limit: 20},
}

// page is what the service shows: an item, from the catalog over gRPC, and what
// others say of it, from the reviews over HTTP.
type page struct {
	catalog shopv1.CatalogClient
	reviews *http.Client
	url     string
}

func (p *page) show(ctx context.Context) (string, error) {
	item, err := p.catalog.GetItem(ctx, &shopv1.GetItemRequest{Id: "lamp"})
	if err != nil {
		return "", fmt.Errorf("no item: %w", err) // there is no page without one
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, p.url+"/items/lamp", nil)
	if err != nil {
		return "", err
	}
	resp, err := p.reviews.Do(req)
	if err != nil {
		return "", fmt.Errorf("no reviews: %w", err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	return fmt.Sprintf("%s, reviews: %s %d bytes", item.GetName(), resp.Status, len(text)), err
}

func main() {
	log.SetFlags(0)
	flag.Bool("short", false, "changes nothing: it takes a second anyway")
	flag.Parse()
	catalog, reviews := shop.NewGRPC(shop.NewCatalog()), shop.NewHTTP(shop.NewCatalog())
	grpcAddr, stopGRPC, err := catalog.Start("127.0.0.1:0")
	exitOn(err)
	defer stopGRPC()
	httpAddr, stopHTTP, err := reviews.Start("127.0.0.1:0")
	exitOn(err)
	defer stopHTTP()

	catalogKit, err := holdfast.New(holdfast.Config{Name: "catalog", Default: careful})
	exitOn(err)
	conn, err := grpc.NewClient(grpcAddr, append(grpcmw.DialOptions(catalogKit), grpc.WithTransportCredentials(insecure.NewCredentials()))...)
	exitOn(err)
	defer conn.Close()

	// A page without reviews is better than none.
	none := &fallback.Policy{Answer: func(context.Context, fallback.Failure) (any, error) {
		return &http.Response{StatusCode: http.StatusNoContent, Status: "204 No Content"}, nil
	}}
	reviewsKit, err := holdfast.New(holdfast.Config{Name: "reviews", Default: careful, Methods: map[string]holdfast.Policy{
		"GET /items/{id}": {Fallback: none},
	}})
	exitOn(err)
	p := &page{shopv1.NewCatalogClient(conn), &http.Client{Transport: httpmw.NewTransport(nil, reviewsKit)}, "http://" + httpAddr}

	show := func(what string) error {
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		began := time.Now()
		text, err := p.show(ctx)
		if err != nil {
			text = err.Error()
		}
		fmt.Printf("%-32s %3d ms: %s\n", what, time.Since(began).Milliseconds(), text)
		return err
	}
	_ = show("all is well")
	reviews.Silence(true)
	_ = show("the reviews are silent")
	_ = show("and their circuit is open")
	reviews.Silence(false)
	catalog.Silence(true)
	_ = show("the catalog is silent")
	err = show("and its circuit is open")
	catalog.Silence(false)
	if open, ok := errors.AsType[*breaker.OpenError](err); ok {
		time.Sleep(open.RetryAfter())
	}
	_ = show("all is well again")
}

func exitOn(err error) {
	if err != nil {
		log.Fatal(err)
	}
}
