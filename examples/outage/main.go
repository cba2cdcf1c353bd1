// Command outage takes a caller through a dependency's silence of 30 s, in virtual
// time, and shows what each layer does about it.
//
// A published article did so with six configurations of breaker and retry. Here
// they run on this module's own code, beside the article's figures, and then what
// the article does not have: a bulkhead, the stall rule, a retry budget, nested
// retries, a late success, a fleet.
//
//	go run ./examples/outage                the tables, over 200 seeds
//	go run ./examples/outage -short         over 20 seeds
//	go run ./examples/outage -json          the ranges as one JSON object
//	go run ./examples/outage -svg charts    the charts as well, into a folder
//
// A policy of one's own goes through a scenario of one's own, and what is to be
// learned of that is said in words:
//
//	go run ./examples/outage -policy FILE -scenario FILE
//
// The folder scenarios has examples of both.
//
// The same seeds give the same bytes. policies.go has the policy to copy; the
// simulation is in sim.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"runtime/debug"

	"github.com/holdfast-go/holdfast/examples/internal/program"
)

func main() {
	tuneCollector()
	program.Main("outage", run)
}

// The numbers of seeds.
const (
	fullSeeds  = 200
	shortSeeds = 20
)

func run(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	flags := flag.NewFlagSet("outage", flag.ContinueOnError)
	flags.SetOutput(stderr)
	seeds := flags.Int("seeds", fullSeeds, "the number of `seeds`, from 1 on")
	short := flags.Bool("short", false, fmt.Sprintf("run %d seeds", shortSeeds))
	asJSON := flags.Bool("json", false, "print the ranges as one JSON object and nothing else")
	svg := flags.String("svg", "", "write the charts into the `folder` too")
	policyFile := flags.String("policy", "", "with -scenario: the `file` of the policy to play; without it, that of policies.go")
	scenarioFile := flags.String("scenario", "", "play the scenario of a `file` and not the article's outage")
	if err := program.Parse(flags, args); err != nil {
		return err
	}
	if *seeds < 1 {
		return fmt.Errorf("-seeds = %d: must be at least 1", *seeds)
	}
	if *policyFile != "" && *scenarioFile == "" {
		return errors.New("-policy needs a -scenario: what is to happen to it")
	}
	if *short {
		*seeds = shortSeeds
	}

	told, clear := progress(stdout, stderr)
	var r report
	var err error
	if *scenarioFile != "" {
		r, err = takeOwn(ctx, *policyFile, *scenarioFile, *seeds, told)
	} else {
		r, err = experiment(ctx, *seeds, told)
	}
	clear()
	if err != nil {
		return err
	}
	if *svg != "" {
		drawings, err := r.drawings(ctx)
		if err != nil {
			return err
		}
		if err := writeDrawings(*svg, drawings); err != nil {
			return err
		}
	}
	if *asJSON {
		return writeJSON(stdout, *seeds, r.all())
	}
	return r.writeText(stdout)
}

// report is what there is to print and to draw.
type report interface {
	all() []result
	writeText(io.Writer) error
	drawings(context.Context) (map[string]drawing, error)
}

// tuneCollector lets the heap grow: what lives in it is little, what is made and
// dropped is much.
func tuneCollector() { debug.SetGCPercent(800) }
