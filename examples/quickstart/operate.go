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
	served := make(chan error, 1)
	go func() { served <- server.Serve(listener) }()
	fmt.Fprintf(progress, "The operations page: http://%s/\nThe shop is up for %v, silent for %v, and up again for %v; then it begins anew. Interrupt to end.\n",
		listener.Addr(), p.healthy, p.silent, p.healed)

	ctx, stop := context.WithCancel(ctx)
	defer stop()
	var wires sync.WaitGroup
	var mu sync.Mutex
	for wire, start := range map[string]starter{"http": startHTTP, "grpc": startGRPC} {
		s, startErr := start(kits[wire])
		if startErr != nil {
			err = startErr
			stop()
			break
		}
		wires.Go(func() {
			defer s.stop()
			for ctx.Err() == nil {
				if runErr := newCourse(p).with(ctx, s); runErr != nil && ctx.Err() == nil {
					mu.Lock()
					err = errors.Join(err, runErr)
					mu.Unlock()
					stop()
				}
			}
		})
	}
	select {
	case <-ctx.Done():
	case serveErr := <-served:
		err = serveErr
		stop()
	}
	wires.Wait()
	page.Close()
	_ = server.Close()
	return err
}

// loopback reports whether an address is one of this machine's own.
func loopback(address string) bool {
	host, _, err := net.SplitHostPort(address)
	return err == nil && (host == "localhost" || net.ParseIP(host).IsLoopback())
}
