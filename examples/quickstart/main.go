// Command quickstart shows what the kit is for, on real servers.
//
// It starts the shop over HTTP and over gRPC on loopback and lets 40 workers
// call it through an outage: the servers answer, then take requests and answer
// nothing, then answer again. First the workers use a bare client, which has
// nothing but a timeout, then a client with the kit. It ends with a table of what
// the callers and the servers saw.
//
//	go run ./examples/quickstart          half a minute
//	go run ./examples/quickstart -short   nine seconds
//	go run ./examples/quickstart -json    the figures as one JSON object
//	go run ./examples/quickstart -page 127.0.0.1:8090
//
// The last serves the operations page while the client with the kit goes through
// one outage after another, until it is interrupted.
//
// policies.go and clients.go are the part to copy; the rest is load and
// bookkeeping.
package main

import (
	"context"
	"errors"
	"flag"
	"io"
	"sync"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/examples/internal/program"
)

// plan is the course of one run.
type plan struct {
	workers                 int
	think                   time.Duration // mean pause of a worker between two calls
	healthy, silent, healed time.Duration // the three phases
}

var (
	full  = plan{40, 20 * time.Millisecond, 2 * time.Second, 8 * time.Second, 4 * time.Second}
	short = plan{40, 20 * time.Millisecond, 300 * time.Millisecond, 2700 * time.Millisecond, 1400 * time.Millisecond}
)

func (p plan) total() time.Duration { return p.healthy + p.silent + p.healed }

func main() {
	program.Main("quickstart", run)
}

func run(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	flags := flag.NewFlagSet("quickstart", flag.ContinueOnError)
	flags.SetOutput(stderr)
	quick := flags.Bool("short", false, "run through a shorter outage, in nine seconds")
	page := flags.String("page", "", "serve the operations page at this address, and have one outage after another with the kit until interrupted")
	asJSON := flags.Bool("json", false, "print the figures as one JSON object and nothing else")
	if err := program.Parse(flags, args); err != nil {
		return err
	}
	if *page != "" {
		return operate(ctx, *page, full, stderr)
	}
	p := full
	if *quick {
		p = short
	}
	// Progress is for somebody who watches: with either end in a file or a pipe
	// there is nobody, or the picture would land among the results.
	screen := io.Writer(nil)
	if program.IsTerminal(stdout) && program.IsTerminal(stderr) {
		screen = stderr
	}

	bare, err := through(ctx, p, "bare", screen)
	if err != nil {
		return err
	}
	kit, err := through(ctx, p, "kit", screen)
	if err != nil {
		return err
	}
	r := report{plan: p, http: pair{bare["http"], kit["http"]}, grpc: pair{bare["grpc"], kit["grpc"]}}
	if *asJSON {
		return r.writeJSON(stdout)
	}
	return r.writeText(stdout)
}

// through takes one kind of client through the outage, on both wires at once,
// and returns the runs by the wire's name.
func through(ctx context.Context, p plan, kind string, screen io.Writer) (map[string]*course, error) {
	courses := map[string]*course{"http": newCourse(p), "grpc": newCourse(p)}
	starts := map[string]starter{"http": startHTTP, "grpc": startGRPC}
	var kits map[string]*holdfast.Kit // none for the bare client
	if kind == "kit" {
		var err error
		if kits, err = bothKits(); err != nil {
			return nil, err
		}
	}

	var (
		wires sync.WaitGroup
		mu    sync.Mutex
		errs  error
	)
	stopDrawing := draw(screen, kind, p, courses)
	for wire, start := range starts {
		wires.Go(func() {
			err := courses[wire].run(ctx, start, kits[wire])
			mu.Lock()
			defer mu.Unlock()
			errs = errors.Join(errs, err)
		})
	}
	wires.Wait()
	stopDrawing()
	if ctx.Err() != nil {
		return nil, errors.New("interrupted")
	}
	return courses, errs
}
