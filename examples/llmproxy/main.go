// Command llmproxy shows a proxy in front of three channels that stream completions,
// as OpenAI's API does, with two models each.
//
// A goes silent, B is slow to its first token, C breaks off half way. The proxy gives
// a channel 200 ms to its first token and moves on to the next; it never mixes two
// channels' tokens in one answer, and a channel that is cut off gets probes only. Each
// letter is a request: who served it and how it ended; beside a row of them is how long
// the first token took, and what the breakers did stands between the rows.
//
//	go run ./examples/llmproxy          eleven seconds
//	go run ./examples/llmproxy -short   six
//	go run ./examples/llmproxy -v       a line for each request
//	go run ./examples/llmproxy -json    the figures as one JSON object
//
// In the figures ttft_p99_ms is the time to the first token, in milliseconds, that 99
// of 100 requests did not exceed, of those made while A was silent and its breaker had
// opened.
//
// proxy.go is the part to copy; the rest is channels, load and bookkeeping.
package main

import (
	"context"
	"errors"
	"flag"
	"io"
	"net/http"
	"net/http/httptest"

	"github.com/holdfast-go/holdfast/examples/internal/program"
)

func main() {
	program.Main("llmproxy", run)
}

func run(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	flags := flag.NewFlagSet("llmproxy", flag.ContinueOnError)
	flags.SetOutput(stderr)
	quick := flags.Bool("short", false, "tell the story in six seconds")
	each := flags.Bool("v", false, "print a line for each request")
	asJSON := flags.Bool("json", false, "print the figures as one JSON object and nothing else")
	if err := program.Parse(flags, args); err != nil {
		return err
	}
	p, watched := full, &screen{out: stdout, each: *each}
	if *quick {
		p = short
	}
	if *asJSON {
		watched = nil
	}
	c, err := newCourse(p, watched)
	if err != nil {
		return err
	}
	if err := c.onLoopback(ctx); err != nil {
		return err
	}
	if ctx.Err() != nil {
		return errors.New("interrupted")
	}
	if *asJSON {
		return c.figures().writeJSON(stdout)
	}
	return c.figures().writeText(stdout)
}

// onLoopback runs the course with real servers.
func (c *course) onLoopback(ctx context.Context) error {
	var channels []channel
	for _, p := range c.providers {
		server := httptest.NewServer(p)
		defer server.Close()
		channels = append(channels, channel{p.name, server.URL, p.key})
	}
	base := http.DefaultTransport.(*http.Transport).Clone()
	defer base.CloseIdleConnections()
	proxy, err := newProxy(base, c.kit, channels)
	if err != nil {
		return err
	}
	server := httptest.NewServer(proxy)
	defer server.Close()
	c.run(ctx, server.Client(), server.URL)
	return nil
}
