// Command shared shows one outage from the side of a fleet: several worker
// processes call one dependency, first each with breakers of its own, then with
// breakers that share their state on Redis or Valkey.
//
// It starts the dependency and the workers, which are this program again, and
// uses the server at -redis, or starts redis-server if it is installed, or else
// one inside this process; it says which.
//
//	go run ./examples/shared                       half a minute
//	go run ./examples/shared -short                nine seconds
//	go run ./examples/shared -json                 the figures as one JSON object
//	go run ./examples/shared -redis 127.0.0.1:6379
//
// worker.go is the part to copy.
package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/holdfast-go/holdfast/examples/internal/program"
)

// plan is the course of one run.
type plan struct {
	workers                 int
	healthy, outage, healed time.Duration
}

var (
	full  = plan{8, 2 * time.Second, 9 * time.Second, 4 * time.Second}
	short = plan{5, 800 * time.Millisecond, 2500 * time.Millisecond, 1200 * time.Millisecond}
)

func main() {
	if os.Getenv(orders) != "" {
		if err := work(os.Getenv(orders), os.Stdin, os.Stdout); err != nil {
			fmt.Fprintln(os.Stderr, "shared, a worker:", err)
			os.Exit(1)
		}
		return
	}
	program.Main("shared", run)
}

func run(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	flags := flag.NewFlagSet("shared", flag.ContinueOnError)
	flags.SetOutput(stderr)
	quick := flags.Bool("short", false, "run through a shorter outage, in nine seconds")
	asJSON := flags.Bool("json", false, "print the figures as one JSON object and nothing else")
	addr := flags.String("redis", "", "address of a Redis or Valkey `server`; empty starts one")
	if err := program.Parse(flags, args); err != nil {
		return err
	}
	p := full
	if *quick {
		p = short
	}
	server, err := startStore(*addr)
	if err != nil {
		return err
	}
	defer server.stop()
	if !*asJSON {
		fmt.Fprintf(stdout, "The store is %s. %d workers, an outage of %v.\n", server.what, p.workers, p.outage)
	}
	alone, err := outage(ctx, p, "")
	if err != nil {
		return err
	}
	shared, err := outage(ctx, p, server.addr)
	if err != nil {
		return err
	}
	if *asJSON {
		return json.NewEncoder(stdout).Encode(figuresOf(p, server.kind, alone, shared))
	}
	report(stdout, p, alone, shared)
	return nil
}
