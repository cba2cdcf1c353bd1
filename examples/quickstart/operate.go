package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/telemetry"
)

// operate serves the operations page at an address while the client with the kit
// goes through one outage after another, on both wires.
func operate(ctx context.Context, address string, p plan, progress io.Writer) error {
	kits, err := bothKits()
	if err != nil {
		return err
	}
	listener, err := net.Listen("tcp", address)
	if err != nil {
		return err
	}
	page := telemetry.Page(kits["http"], kits["grpc"])
	if loopback(listener.Addr().String()) { // whoever has a shell here may act
		page.Control(func(r *http.Request) (string, error) {
			if !loopback(r.Host) { // some name that leads here
				return "", errors.New("not from this machine")
			}
			return "you", nil
		})
	}
	server := &http.Server{Handler: page, ReadHeaderTimeout: 5 * time.Second}
	fmt.Fprintf(progress, "The operations page: http://%s/\nThe shop is up for %v, silent for %v, and up again for %v; then it begins anew. Interrupt to end.\n",
		listener.Addr(), p.healthy, p.silent, p.healed)

	ctx, fail := context.WithCancelCause(ctx)
	var running sync.WaitGroup
	running.Go(func() {
		if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
			fail(err)
		}
	})
	for wire, start := range map[string]starter{"http": startHTTP, "grpc": startGRPC} {
		running.Go(func() { fail(again(ctx, p, start, kits[wire])) })
	}
	<-ctx.Done()
	page.Close()
	_ = server.Close()
	running.Wait()
	if err := context.Cause(ctx); !errors.Is(err, context.Canceled) {
		return err
	}
	return nil // interrupted, as it is meant to end
}

// again takes a client through one outage after another until ctx is done. What
// somebody does to its breakers meanwhile is none of its affair.
func again(ctx context.Context, p plan, start starter, kit *holdfast.Kit) error {
	s, err := start(kit)
	if err != nil {
		return err
	}
	defer s.stop()
	for err = newCourse(p).with(ctx, s); err == nil; {
		err = newCourse(p).phases(ctx, s)
	}
	return err
}

// loopback reports whether an address is one of this machine's own.
func loopback(address string) bool {
	host, _, err := net.SplitHostPort(address)
	return err == nil && (host == "localhost" || net.ParseIP(host).IsLoopback())
}
