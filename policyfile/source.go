package policyfile

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/holdfast-go/holdfast"
)

// Source is a file of policies and what a file cannot hold.
type Source struct {
	// Path is the file's name.
	Path string

	// Amend, if set, completes what was read each time, before it is used: with
	// Classify, a fallback, the hooks of a breaker. It may refuse it.
	Amend func(*File) error
}

// Load reads the file and completes it.
func (s Source) Load() (*File, error) {
	f, err := LoadFile(s.Path)
	if err == nil && s.Amend != nil {
		err = s.Amend(f)
	}
	if err != nil {
		return nil, err
	}
	return f, nil
}

// Update reads the file and puts it in force, see [holdfast.Kit.Update]. If anything
// is wrong with it the kit's policies stay as they are. So they do if adapters use the
// kit and none is of the file's wire, for its names would match nothing; of a kit that
// no adapter uses yet the wire is not known, and any is taken.
func (s Source) Update(k *holdfast.Kit) error {
	f, err := s.Load()
	if err != nil {
		return err
	}
	if wires := adapters(k); len(wires) > 0 && !slices.Contains(wires, f.Wire) {
		return fmt.Errorf("policyfile: %s: wire = %s: the kit's methods are named by the rules of %s", s.Path, f.Wire, strings.Join(wires, " and "))
	}
	return k.Update(f.Config)
}

// adapters returns the wires of the adapters that use the kit.
func adapters(k *holdfast.Kit) (wires []string) {
	for _, e := range k.Policies() {
		if (e.Wire == "grpc" || e.Wire == "http") && !slices.Contains(wires, e.Wire) {
			wires = append(wires, e.Wire)
		}
	}
	return wires
}

// Watch updates the kit each time that something is received from trigger, and
// tells report of it, with nil if the file is in force. It returns when ctx is done
// or trigger is closed; it starts no goroutine of its own. What triggers is up to
// the caller: a channel of signals, of a ticker, of a watcher of files. report may be
// nil.
func Watch[T any](ctx context.Context, k *holdfast.Kit, s Source, trigger <-chan T, report func(error)) {
	for {
		select {
		case <-ctx.Done():
			return
		case _, more := <-trigger:
			if !more || ctx.Err() != nil {
				return
			}
		}
		if err := s.Update(k); report != nil {
			report(err)
		}
	}
}
