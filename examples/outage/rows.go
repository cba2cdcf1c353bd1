package main

import (
	"context"
	"runtime"
	"sync"
	"sync/atomic"

	"github.com/holdfast-go/holdfast/examples/outage/sim"
)

// row is one configuration of the table.
type row struct {
	name    string
	setup   sim.Setup
	client  sim.Client
	article *published // nil where the article has no such row
}

// result is a row and what the seeds gave for it.
type result struct {
	row
	seeds int
	measured
}

// runAll runs every row with the seeds 1 to seeds. told is called with the share
// done, now and then.
func runAll(ctx context.Context, rows []row, seeds int, told func(done, all int)) ([]result, error) {
	runs := make([][]sim.Figures, len(rows))
	for i := range runs {
		runs[i] = make([]sim.Figures, seeds)
	}
	all := len(rows) * seeds
	var (
		workers   sync.WaitGroup
		next      atomic.Int64
		mu        sync.Mutex
		done      int
		firstFail error
	)
	for range runtime.GOMAXPROCS(0) {
		workers.Go(func() {
			for ctx.Err() == nil {
				job := int(next.Add(1)) - 1
				if job >= all {
					return
				}
				i, seed := job/seeds, job%seeds
				figures, err := sim.Run(uint64(seed+1), rows[i].setup, rows[i].client, nil)
				runs[i][seed] = figures
				mu.Lock()
				done++
				if err != nil && firstFail == nil {
					firstFail = err
				}
				told(done, all)
				mu.Unlock()
			}
		})
	}
	workers.Wait()
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	results := make([]result, len(rows))
	for i, r := range rows {
		results[i] = result{r, seeds, measure(runs[i])}
	}
	return results, firstFail
}
