package main

import (
	"context"
	"net/http"
	"sync"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/breaker"
	"github.com/holdfast-go/holdfast/call"
	"github.com/holdfast-go/holdfast/examples/internal/program"
)

// plan is how long each part of the story lasts.
type plan struct {
	well, silent, maintenance, back time.Duration

	workers int
	think   time.Duration // of a worker between two requests
}

var (
	full  = plan{time.Second, 3 * time.Second, 2 * time.Second, 5 * time.Second, 12, 40 * time.Millisecond}
	short = plan{300 * time.Millisecond, 1500 * time.Millisecond, 700 * time.Millisecond, 3500 * time.Millisecond, 12, 40 * time.Millisecond}
)

// afterRefusal is how long a worker waits that got nothing.
const afterRefusal = 200 * time.Millisecond

// turning is a breaker's change of state.
type turning struct {
	at time.Time
	breaker.Transition
}

// course is one run of the story.
type course struct {
	plan      plan
	providers []*provider
	kit       *holdfast.Kit

	mu          sync.Mutex
	screen      *screen // nil if nobody watches
	completions []completion
	turnings    []turning
	silentEnd   time.Time // when A answered again
}

func newCourse(p plan, s *screen) (*course, error) {
	c := &course{plan: p, screen: s}
	for _, name := range []string{"A", "B", "C"} {
		c.providers = append(c.providers, &provider{name: name, key: "key of " + name})
	}
	kit, err := holdfast.New(policies(holdfast.Hooks{
		Transition: c.turned,
		Attempt: func(ctx context.Context, a call.Attempt) (context.Context, func(call.Result)) {
			if a.Probe {
				a.Header.Set(probeHeader, "1")
			}
			return ctx, nil
		},
	}))
	c.kit = kit
	return c, err
}

// run lets workers ask the proxy at url while the story goes on.
func (c *course) run(ctx context.Context, client *http.Client, url string) {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	c.screen.begin()
	var workers sync.WaitGroup
	over := make(chan struct{})
	for n := range c.plan.workers {
		workers.Go(func() {
			time.Sleep(c.plan.think * time.Duration(n) / time.Duration(c.plan.workers))
			for {
				done := ask(ctx, client, url)
				c.served(done)
				think := c.plan.think
				if done.tokens == 0 {
					think = afterRefusal
				}
				select {
				case <-time.After(think):
				case <-over:
					return
				case <-ctx.Done():
					return
				}
			}
		})
	}
	c.tell(ctx)
	close(over)
	workers.Wait()
	c.mu.Lock()
	defer c.mu.Unlock()
	c.screen.flush()
}

// tell is the story.
func (c *course) tell(ctx context.Context) {
	a, b, third := c.providers[0], c.providers[1], c.providers[2]
	c.say("A, B and C are well: A is preferred")
	_ = program.Pause(ctx, c.plan.well)

	c.say("A goes silent, B is slow to its first token")
	a.turn(silent)
	b.turn(slow)
	_ = program.Pause(ctx, c.plan.silent)

	c.say("somebody closes B off for maintenance; C breaks off every second stream")
	third.turn(breaks)
	c.channel("B").ForceOpen("maintenance")
	_ = program.Pause(ctx, c.plan.maintenance)

	c.say("all are well again, and B is released")
	c.mu.Lock()
	c.silentEnd = time.Now()
	c.mu.Unlock()
	for _, p := range c.providers {
		p.turn(well)
	}
	c.channel("B").Release()
	_ = program.Pause(ctx, c.plan.back)
}

// channel returns the breaker of a channel, which has been used.
func (c *course) channel(name string) *breaker.Breaker {
	for key, b := range c.kit.Breakers() {
		if key == name {
			return b
		}
	}
	panic("llmproxy: no breaker of " + name)
}

// served notes a completion.
func (c *course) served(done completion) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.completions = append(c.completions, done)
	c.screen.request(len(c.completions), done)
}

// turned notes what a breaker does.
func (c *course) turned(t breaker.Transition) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.turnings = append(c.turnings, turning{time.Now(), t})
	c.screen.line("      breaker %s: %s to %s (%s)", t.Key, t.From, t.To, t.Reason)
}

func (c *course) say(text string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.screen.part(text)
}
