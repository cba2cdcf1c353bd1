package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"time"
)

// Every contender runs in a process of its own: some libraries leave goroutines
// and timers behind, which whoever is measured next would pay for. The processes
// of a row live side by side and make their passes by turns, so that what else
// the machine does hits all of them alike.

// childEnv marks a process as a contender's.
const childEnv = "HOLDFAST_BENCH_CONTENDER"

type order struct {
	Row       string        `json:"row,omitempty"` // the first one only
	Contender string        `json:"contender,omitempty"`
	Pass      time.Duration `json:"pass,omitempty"`
	Count     bool          `json:"count,omitempty"` // allocations, not time
}

// asChild serves the parent until it closes the pipe, if this process is a
// contender's, and reports whether it was.
func asChild() bool {
	if os.Getenv(childEnv) == "" {
		return false
	}
	if err := serve(os.Stdin, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
	os.Exit(0) // without waiting for what the library left behind
	return true
}

func serve(in io.Reader, out io.Writer) error {
	orders, replies := json.NewDecoder(in), json.NewEncoder(out)
	var first order
	if err := orders.Decode(&first); err != nil {
		return err
	}
	r, c, err := lookUp(first.Row, first.Contender)
	if err != nil {
		return err
	}
	if r.memory {
		if err := replies.Encode(weigh(c.setup(), objects)); err != nil {
			return err
		}
		_, err := io.Copy(io.Discard, in)
		return err
	}
	g := newGauge(r, c, first.Pass)
	if err := replies.Encode(g.pass()); err != nil {
		return err
	}
	for {
		var next order
		if err := orders.Decode(&next); err == io.EOF {
			return nil
		} else if err != nil {
			return err
		}
		measure := g.pass
		if next.Count {
			measure = g.allocations
		}
		if err := replies.Encode(measure()); err != nil {
			return err
		}
	}
}

// objects is how many a row of memory makes.
const objects = 100_000

func lookUp(rowName, contenderName string) (*row, *contender, error) {
	for _, r := range rows() {
		if r.name != rowName {
			continue
		}
		for i := range r.contenders {
			if r.contenders[i].name == contenderName {
				return &r, &r.contenders[i], nil
			}
		}
	}
	return nil, nil, fmt.Errorf("no contender %q in a row %q", contenderName, rowName)
}

// child is a contender's process, seen from the parent.
type child struct {
	cmd     *exec.Cmd
	orders  io.WriteCloser
	replies *json.Decoder
	first   sample
}

// start starts a contender's process; its first pass, or its weight, is there
// when it returns.
func start(r *row, c *contender, d time.Duration) (*child, error) {
	exe, err := os.Executable()
	if err != nil {
		return nil, err
	}
	cmd := exec.Command(exe)
	cmd.Env = append(os.Environ(), childEnv+"=1")
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	k := &child{cmd: cmd, orders: in, replies: json.NewDecoder(bufio.NewReader(out))}
	if k.first, err = k.ask(order{Row: r.name, Contender: c.name, Pass: d}); err != nil {
		k.stop()
		return nil, fmt.Errorf("%s, %s: %w", r.name, c.name, err)
	}
	return k, nil
}

func (k *child) ask(o order) (sample, error) {
	if err := json.NewEncoder(k.orders).Encode(o); err != nil {
		return sample{}, err
	}
	var s sample
	err := k.replies.Decode(&s)
	return s, err
}

func (k *child) stop() {
	k.orders.Close()
	_ = k.cmd.Wait() // its own error is on standard error already
}
