package main

import (
	"context"
	"fmt"
	"runtime"
	"slices"
	"sync"

	"github.com/holdfast-go/holdfast/examples/outage/sim"
)

// row is one configuration of the table.
type row struct {
	name    string
	setup   sim.Setup
	client  sim.Client
	article *published // nil where the article has no such row
	seeds   int        // at most this many; 0 is as many as asked for
	sharing bool       // the callers share their breakers' state
}

func (r *row) run(seed uint64) (sim.Figures, error) {
	if r.sharing {
		return runSharing(seed, r.setup, r.client)
	}
	return sim.Run(seed, r.setup, r.client, nil)
}

// result is a row and what its seeds gave for it.
type result struct {
	row
	measured
}

// runAll runs every row with the seeds from 1 to seeds. told is called now and then
// with how many runs are done, of how many.
func runAll(ctx context.Context, rows []row, seeds int, told func(done, all int)) ([]result, error) {
	type job struct {
		row  int
		seed int
	}
	var jobs []job
	results, runs := make([]result, len(rows)), make([][]sim.Figures, len(rows))
	for i, r := range rows {
		if r.seeds == 0 || r.seeds > seeds {
			r.seeds = seeds
		}
		results[i].row, runs[i] = r, make([]sim.Figures, r.seeds)
		for seed := range r.seeds {
			jobs = append(jobs, job{i, seed})
		}
	}
	// The long ones first, so that no worker is left with one at the end.
	slices.SortStableFunc(jobs, func(a, b job) int { return rows[b.row].setup.Callers - rows[a.row].setup.Callers })

	var (
		workers sync.WaitGroup
		mu      sync.Mutex
		next    int
		done    int
		failed  error
	)
	take := func() (job, bool) {
		mu.Lock()
		defer mu.Unlock()
		if next == len(jobs) || failed != nil || ctx.Err() != nil {
			return job{}, false
		}
		next++
		return jobs[next-1], true
	}
	for range runtime.GOMAXPROCS(0) {
		workers.Go(func() {
			for j, ok := take(); ok; j, ok = take() {
				figures, err := rows[j.row].run(uint64(j.seed + 1))
				mu.Lock()
				runs[j.row][j.seed] = figures
				if done++; err != nil {
					failed = fmt.Errorf("%s: %w", rows[j.row].name, err)
				}
				told(done, len(jobs))
				mu.Unlock()
			}
		})
	}
	workers.Wait()
	if failed == nil {
		failed = context.Cause(ctx)
	}
	for i := range results {
		results[i].measured = measure(runs[i], rows[i].setup.To-rows[i].setup.From)
	}
	return results, failed
}
