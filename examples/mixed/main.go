// Command mixed is a service that calls two dependencies over two wires, each with
// a kit of its own, within one deadline of its caller's. It starts both servers and
// lets one of them fall silent, and then the other: what the other one answers is not
// held up, and a page without reviews is shown without them. Each line is a page, with
// the time it took and the requests that were sent for it, to the catalog and to the
// reviews.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"net/http"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/breaker"
	"github.com/holdfast-go/holdfast/bulkhead"
	"github.com/holdfast-go/holdfast/examples/internal/program"
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
	Timeout:  &timeout.Limits{Total: 700 * time.Millisecond, Attempt: 250 * time.Millisecond},
	Breaker:  &breaker.Config{Consecutive: 2, Cooldown: 800 * time.Millisecond, ProbeSuccesses: 1},
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
	program.Main("mixed", run)
}

func run(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	flags := flag.NewFlagSet("mixed", flag.ContinueOnError)
	flags.SetOutput(stderr)
	flags.Bool("short", false, "changes nothing: it takes three seconds anyway")
	if err := program.Parse(flags, args); err != nil {
		return err
	}
	catalog, reviews := shop.NewGRPC(shop.NewCatalog()), shop.NewHTTP(shop.NewCatalog())
	grpcAddr, stopGRPC, err := catalog.Start("127.0.0.1:0")
	if err != nil {
		return err
	}
	defer stopGRPC()
	httpAddr, stopHTTP, err := reviews.Start("127.0.0.1:0")
	if err != nil {
		return err
	}
	defer stopHTTP()

	catalogKit, err := holdfast.New(holdfast.Config{Name: "catalog", Default: careful})
	if err != nil {
		return err
	}
	conn, err := grpc.NewClient(grpcAddr, append(grpcmw.DialOptions(catalogKit), grpc.WithTransportCredentials(insecure.NewCredentials()))...)
	if err != nil {
		return err
	}
	defer conn.Close()

	// A page without reviews is better than none.
	none := &fallback.Policy{Answer: func(context.Context, fallback.Failure) (any, error) {
		return &http.Response{StatusCode: http.StatusNoContent, Status: "204 No Content"}, nil
	}}
	reviewsKit, err := holdfast.New(holdfast.Config{Name: "reviews", Default: careful, Methods: map[string]holdfast.Policy{
		"GET /items/{id}": {Fallback: none},
	}})
	if err != nil {
		return err
	}
	client := &http.Client{Transport: httpmw.NewTransport(nil, reviewsKit)}
	p := &page{shopv1.NewCatalogClient(conn), client, "http://" + httpAddr}

	// show makes the page, within two seconds, and tells how many requests that took.
	show := func(what string) error {
		ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
		defer cancel()
		toCatalog, toReviews, began := catalog.Hits(), reviews.Hits(), time.Now()
		text, err := p.show(ctx)
		if err != nil {
			text = err.Error()
		}
		fmt.Fprintf(stdout, "%-25s %3d ms, sent %d + %d: %s\n", what, time.Since(began).Milliseconds(),
			catalog.Hits()-toCatalog, reviews.Hits()-toReviews, text)
		return err
	}
	// until shows the page until a kit has closed its dependency off.
	until := func(kit *holdfast.Kit, what string) {
		for show(what); ctx.Err() == nil && !isOpen(kit); show(what) {
		}
	}
	_ = show("all is well")
	reviews.Silence(true)
	until(reviewsKit, "the reviews are silent")
	_ = show("and their circuit is open")
	reviews.Silence(false)
	catalog.Silence(true)
	until(catalogKit, "the catalog is silent")
	err = show("and its circuit is open")
	catalog.Silence(false)
	if open, ok := errors.AsType[*breaker.OpenError](err); ok {
		_ = program.Pause(ctx, open.RetryAfter())
	}
	_ = show("all is well again")
	return ctx.Err()
}

// isOpen reports whether a breaker of the kit is open.
func isOpen(kit *holdfast.Kit) bool {
	for _, b := range kit.Breakers() {
		if b.State() == breaker.Open {
			return true
		}
	}
	return false
}
