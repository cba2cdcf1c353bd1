// Command outbox shows what to do with a write while what it is for is down: keep
// it where the application's own transaction keeps its data, and send it later,
// each time with the same idempotency key.
//
// It starts a service on loopback that carries orders out, and a shop that takes
// them. The service goes down and comes back, and then loses answers on their way
// to the shop. Every order that the shop has taken is carried out once.
//
//	go run ./examples/outbox
//	go run ./examples/outbox -short   the same with fewer orders
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"time"

	"github.com/holdfast-go/holdfast/examples/internal/program"
)

func main() {
	program.Main("outbox", run)
}

func run(ctx context.Context, args []string, out, stderr io.Writer) (err error) {
	flags := flag.NewFlagSet("outbox", flag.ContinueOnError)
	flags.SetOutput(stderr)
	short := flags.Bool("short", false, "take fewer orders")
	if err := program.Parse(flags, args); err != nil {
		return err
	}
	each := 5
	if *short {
		each = 2
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	service := newOrders()
	server := &http.Server{Handler: service, ErrorLog: log.New(io.Discard, "", 0)}
	go func() { _ = server.Serve(listener) }()
	defer server.Close()

	dir, err := os.MkdirTemp("", "outbox")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	base := &http.Transport{}
	defer base.CloseIdleConnections()
	return play(ctx, service, base, "http://"+listener.Addr().String(), filepath.Join(dir, "orders.jsonl"), each, out)
}

// play goes through an outage: some orders before, while and after it.
func play(ctx context.Context, service *orders, base http.RoundTripper, url, file string, each int, out io.Writer) (err error) {
	t, err := openTable(file)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, t.Close()) }()
	s, err := newShop(base, url, t, out)
	if err != nil {
		return err
	}
	taken := 0
	take := func() error {
		for range each {
			taken++
			if err := s.take(fmt.Sprintf("lamp no. %d", taken)); err != nil {
				return err
			}
		}
		_, err := s.sendPending(ctx)
		return err
	}

	fmt.Fprintln(out, "\nThe service is there.")
	if err := take(); err != nil {
		return err
	}
	fmt.Fprintln(out, "\nThe service is down. Orders are taken all the same, and sent to nobody.")
	service.setDown(true)
	for range 3 {
		if err := take(); err != nil {
			return err
		}
	}
	fmt.Fprintln(out, "\nThe service is back, but its next answers get lost: the orders are carried out, and nobody hears of it.")
	service.setDown(false)
	service.loseAnswers(2)
	if err := s.sendAll(ctx); err != nil {
		return err
	}

	done, twice := service.carriedOut()
	requests, repeats := service.seen()
	fmt.Fprintf(out, "\n%d orders taken, %d sent, %d left; %d carried out, %d of them twice; %d requests, %d of them repeats that the service knew by their keys.\n",
		taken, t.count(sent), t.count(pending), done, twice, requests, repeats)
	if done != taken || twice > 0 || t.count(sent) != taken {
		return errors.New("an order was lost, or carried out twice")
	}
	return nil
}

// pause is the worker's, between two rounds.
const pause = 400 * time.Millisecond

// sendAll sends until nothing is left: a worker that comes round, as one in a real
// shop does.
func (s *shop) sendAll(ctx context.Context) error {
	for {
		left, err := s.sendPending(ctx)
		if err != nil || left == 0 {
			return err
		}
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}
