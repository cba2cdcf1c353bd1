// Command policycheck reads files of policies, as a review or a build would before
// they are put in force:
//
//	policycheck [-short] [file ...]
//
// It prints the policy in force of each method, with where each layer comes from
// and what bounds each wait, or else all that is wrong. Without a file it checks its
// own sample. The exit status is 1 if a file has a fault, 2 if it was called wrongly.
package main

import (
	"bytes"
	_ "embed"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/grpcmw"
	"github.com/holdfast-go/holdfast/httpmw"
	"github.com/holdfast-go/holdfast/policyfile"
)

//go:embed good.yaml
var sample []byte

func main() { os.Exit(run(os.Args[1:], os.Stdout, os.Stderr)) }

func run(args []string, out, errs io.Writer) (status int) {
	flags := flag.NewFlagSet("policycheck", flag.ContinueOnError)
	flags.SetOutput(errs)
	short := flags.Bool("short", false, "name the methods alone")
	if flags.Parse(args) != nil {
		return 2
	}
	names := flags.Args()
	if len(names) == 0 {
		names = []string{""}
	}
	for _, name := range names {
		file, err := load(name)
		var policies []holdfast.Explanation
		if err == nil {
			policies, err = explain(file)
		}
		if err != nil {
			tell(errs, name, err)
			status = 1
			continue
		}
		report(out, name, file, policies, *short)
	}
	return status
}

func load(name string) (*policyfile.File, error) {
	if name == "" {
		return policyfile.Load(bytes.NewReader(sample))
	}
	return policyfile.LoadFile(name)
}

// explain makes a kit of the file, as a program would, and asks it what is in force.
// A program that knows its gRPC services finds wrong methods of theirs, too.
func explain(f *policyfile.File) ([]holdfast.Explanation, error) {
	kit, err := holdfast.New(f.Config)
	if err != nil {
		return nil, err
	}
	if f.Wire == "grpc" {
		_, err = grpcmw.New(kit)
	} else {
		_, err = httpmw.New(nil, kit)
	}
	if err != nil {
		return nil, err
	}
	return kit.Policies(), nil
}

// tell prints what is wrong, a line for each fault, as compilers do.
func tell(w io.Writer, name string, err error) {
	faults, ok := errors.AsType[*policyfile.Error](err)
	if !ok {
		fmt.Fprintln(w, err)
		return
	}
	for _, f := range faults.Faults {
		fmt.Fprintf(w, "%s:%v\n", name, f)
	}
	fmt.Fprintf(w, "%s: %d fault(s)\n", name, len(faults.Faults))
}
