package main

import (
	"bufio"
	"context"
	"encoding/json"
	"io"
	"os"
	"os/exec"
	"sync"
	"time"

	"github.com/holdfast-go/holdfast/breaker"
	"github.com/holdfast-go/holdfast/examples/internal/program"
)

// result is what became of one outage.
type result struct {
	sight
	opened, closed spread
	settled        time.Duration // the part of the outage that tail was counted in
}

// spread is how far apart the workers' changes of state were.
type spread struct {
	workers     int // that made the change
	first, last int64
}

func (s *spread) add(at int64) {
	if s.workers++; s.workers == 1 {
		s.first = at
	}
	s.first, s.last = min(s.first, at), max(s.last, at)
}

func (s spread) took() time.Duration { return time.Duration(s.last-s.first) * time.Microsecond }

// outage has a fleet of processes live through an outage; store is the address
// at which they share, empty if they do not.
func outage(ctx context.Context, p plan, store string) (result, error) {
	d := &dependency{}
	server := d.start()
	defer server.Close()
	text, err := json.Marshal(task{server.URL, store})
	if err != nil {
		return result{}, err
	}
	fleet := make([]*process, p.workers)
	defer func() {
		for _, w := range fleet {
			w.end()
		}
	}()
	for i := range fleet {
		if fleet[i], err = startProcess(string(text)); err != nil {
			return result{}, err
		}
	}
	for _, w := range fleet {
		w.ready()
	}
	const settle = 500 * time.Millisecond
	began := time.Now()
	for _, phase := range []struct {
		down bool
		long time.Duration
	}{{false, p.healthy}, {true, p.outage}, {false, p.healed}} {
		if phase.down {
			began = time.Now()
		}
		d.set(phase.down, settle)
		if err := program.Pause(ctx, phase.long); err != nil { // real processes and sockets
			return result{}, err
		}
	}
	res := result{sight: d.sight(), settled: p.outage - settle}
	healed := began.Add(p.outage).UnixMicro()
	for _, w := range fleet {
		w.end()
		if at := w.first(breaker.Open, began.UnixMicro()); at != 0 {
			res.opened.add(at)
		}
		if at := w.first(breaker.Closed, healed); at != 0 {
			res.closed.add(at)
		}
	}
	return res, nil
}

// process is one worker.
type process struct {
	cmd    *exec.Cmd
	stdin  io.Closer
	begun  chan struct{}
	over   chan struct{}
	once   sync.Once
	events []event // once over
}

func startProcess(text string) (*process, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	w := &process{cmd: exec.Command(self), begun: make(chan struct{}), over: make(chan struct{})}
	w.cmd.Env = append(os.Environ(), orders+"="+text)
	w.cmd.Stderr = os.Stderr
	stdin, err := w.cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	w.stdin = stdin
	stdout, err := w.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := w.cmd.Start(); err != nil {
		return nil, err
	}
	go func() {
		defer close(w.over)
		begin := sync.OnceFunc(func() { close(w.begun) })
		defer begin()
		for lines := bufio.NewScanner(stdout); lines.Scan(); begin() {
			var e event
			if json.Unmarshal(lines.Bytes(), &e) == nil {
				w.events = append(w.events, e)
			}
		}
	}()
	return w, nil
}

// ready waits until the worker works, or has ended.
func (w *process) ready() { <-w.begun }

// end ends the worker: it stops when its standard input does.
func (w *process) end() {
	if w == nil {
		return
	}
	w.once.Do(func() {
		_ = w.stdin.Close()
		kill := time.AfterFunc(5*time.Second, func() { _ = w.cmd.Process.Kill() })
		defer kill.Stop()
		<-w.over
		_ = w.cmd.Wait()
	})
}

// first returns when the worker first entered a state from some time on, 0 if it
// did not.
func (w *process) first(to breaker.State, from int64) int64 {
	for _, e := range w.events {
		if e.To == to && e.At >= from {
			return e.At
		}
	}
	return 0
}
