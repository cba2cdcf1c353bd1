package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/examples/internal/program"
)

// outcome is how a call ended for its caller.
type outcome uint8

const (
	ok      outcome = iota
	failed          // with an error, after the server was tried
	refused         // by the kit, without touching the server

	outcomes = int(refused) + 1
)

// sample is one call. Its times count from the start of the run.
type sample struct {
	begin, end time.Duration
	outcome    outcome
}

// course is one run of a client through the outage, and what was seen of it.
type course struct {
	plan    plan
	strip   *strip // filled while it runs
	samples []sample

	silenced, healed time.Duration // when the server fell silent, and when it spoke again
	hits             int           // requests that reached the server in between
}

func newCourse(p plan) *course { return &course{plan: p, strip: newStrip(p.total())} }

// starter starts a server, and a client of it that is bare or has a kit.
type starter func(kit *holdfast.Kit) (*subject, error)

// run starts a server with its client, and lets the workers call while the
// server goes through the phases of the plan.
func (c *course) run(ctx context.Context, start starter, kit *holdfast.Kit) error {
	s, err := start(kit)
	if err != nil {
		return err
	}
	defer s.stop()
	return c.with(ctx, s)
}

// with is run for a server that has been started.
func (c *course) with(ctx context.Context, s *subject) error {
	// The first call makes the connection. It must succeed, or the figures
	// would speak of something else.
	if err := s.call(ctx, look); err != nil {
		return fmt.Errorf("the healthy server does not answer: %w", err)
	}
	return c.phases(ctx, s)
}

// phases lets the workers call while the server goes through them.
func (c *course) phases(ctx context.Context, s *subject) error {
	working, home := context.WithCancel(ctx)
	defer home()
	began := time.Now()
	perWorker := make([][]sample, c.plan.workers)
	var workers sync.WaitGroup
	for w := range c.plan.workers {
		workers.Go(func() {
			perWorker[w] = c.work(ctx, working, began, s, rand.New(rand.NewPCG(1, uint64(w))))
		})
	}

	_ = program.Pause(ctx, c.plan.healthy)
	s.gate.Silence(true)
	c.silenced = time.Since(began)
	before := s.gate.Hits()
	_ = program.Pause(ctx, c.plan.silent)
	c.hits = s.gate.Hits() - before
	c.healed = time.Since(began)
	s.gate.Silence(false)
	_ = program.Pause(ctx, c.plan.healed)

	home()
	workers.Wait()
	for _, samples := range perWorker {
		c.samples = append(c.samples, samples...)
	}
	return ctx.Err()
}

// work makes one call after another, with a pause before each, until it is time
// to go home. A call that has begun is seen through to its end.
func (c *course) work(ctx, working context.Context, began time.Time, s *subject, random *rand.Rand) []sample {
	var samples []sample
	for {
		// From half to one and a half of the mean, so that the workers do not
		// fall into step.
		think := c.plan.think/2 + rand.N(c.plan.think)
		if program.Pause(working, think) != nil {
			return samples
		}
		begin := time.Since(began)
		err := s.call(ctx, choose(random.IntN(100)))
		done := sample{begin, time.Since(began), outcomeOf(err)}
		samples = append(samples, done)
		c.strip.add(done)
	}
}

// choose returns what is asked of the shop, by a number below 100: mostly reads,
// some renames, a few orders.
func choose(n int) request {
	switch {
	case n < 80:
		return look
	case n < 95:
		return rename
	}
	return buy
}

// outcomeOf tells a refusal from a failure. A call that ended short of its
// attempts because of the kit did fail at the server before.
func outcomeOf(err error) outcome {
	switch {
	case err == nil:
		return ok
	case holdfast.Refused(err):
		return refused
	}
	return failed
}
