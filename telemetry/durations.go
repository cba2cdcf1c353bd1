package telemetry

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"sync"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/fallback"
)

// durations are the histograms.
type durations struct{ call, attempt, wait, age metric.Float64Histogram }

// bounds are those of the histograms, in seconds: from a tenth of a millisecond, as
// long as a call within a data centre may take.
var bounds = []float64{.0001, .00025, .0005, .001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30}

// ageBounds are those of stale answers' age, in seconds.
var ageBounds = []float64{.1, 1, 5, 10, 30, 60, 300, 900, 3600, 14400, 86400}

func newDurations(meter metric.Meter) (*durations, error) {
	d := &durations{}
	var errs []error
	for _, h := range []struct {
		to         *metric.Float64Histogram
		name, what string
	}{
		{&d.call, "holdfast.call.duration", "Time to a call's return to its caller."},
		{&d.attempt, "holdfast.attempt.duration", "Time of an attempt, without its wait for a permit."},
		{&d.wait, "holdfast.bulkhead.wait.duration", "Time in a bulkhead's queue."},
		{&d.age, "holdfast.fallback.age", "Age of stale answers."},
	} {
		within := bounds
		if h.to == &d.age {
			within = ageBounds
		}
		made, err := meter.Float64Histogram(h.name, metric.WithUnit("s"), metric.WithDescription(h.what),
			metric.WithExplicitBucketBoundaries(within...))
		*h.to, errs = made, append(errs, err)
	}
	if err := errors.Join(errs...); err != nil {
		return nil, fmt.Errorf("telemetry: %w", err)
	}
	return d, nil
}

func (d *durations) hooks(k *holdfast.Kit, m Metrics, methods *methodNames) holdfast.Hooks {
	results := newResultSets(k.Name(), methods)
	record := func(ctx context.Context, h metric.Float64Histogram, took time.Duration, method, result string) {
		if h.Enabled(ctx) {
			h.Record(ctx, took.Seconds(), results.of(method, result)...)
		}
	}
	h := holdfast.Hooks{
		Returned: func(ctx context.Context, r holdfast.Returned) {
			record(ctx, d.call, r.Took, r.Info.Method, r.Result.Class.String())
		},
		Tried: func(ctx context.Context, t holdfast.Tried) {
			record(ctx, d.attempt, t.Took, t.Info.Method, t.Result.Class.String())
		},
		Fallback: func(ctx context.Context, f holdfast.Fallback) {
			if f.Kind == fallback.KindStale && f.Err == nil {
				record(ctx, d.age, f.Age, f.Info.Method, "stale")
			}
		},
		Queued: func(ctx context.Context, q holdfast.Queued) {
			result := "ok"
			if q.Err != nil {
				result = "refused"
			}
			record(ctx, d.wait, q.Took, q.Info.Method, result)
		},
	}
	if !m.Durations {
		h = holdfast.Hooks{Tried: h.Tried}
	}
	if !m.AttemptDurations {
		h.Tried = nil
	}
	return h
}

// resultSets are the attribute sets of a kit's calls, made once for each method and
// result.
type resultSets struct {
	kit     string
	methods *methodNames
	first   atomic.Pointer[resultSet]                        // of which most are
	known   atomic.Pointer[map[result][]metric.RecordOption] // never written to once stored
	mu      sync.Mutex                                       // held to replace known
}

type result struct{ method, word string }

// resultSet is the attributes of one result.
type resultSet struct {
	result
	set []metric.RecordOption
}

func newResultSets(kit string, methods *methodNames) *resultSets {
	r := &resultSets{kit: kit, methods: methods}
	r.known.Store(&map[result][]metric.RecordOption{})
	return r
}

func (r *resultSets) of(method, word string) []metric.RecordOption {
	at := result{method, word}
	first := r.first.Load()
	if first != nil && first.result == at {
		return first.set
	}
	set := (*r.known.Load())[at]
	if set == nil {
		set = r.learn(at)
	}
	if first == nil {
		r.first.Store(&resultSet{at, set})
	}
	return set
}

func (r *resultSets) learn(at result) []metric.RecordOption {
	r.mu.Lock()
	defer r.mu.Unlock()
	known := *r.known.Load()
	name := r.methods.of(at.method)
	if name == otherKey {
		at.method = otherKey // which need not be known by each of their names
	}
	if set := known[at]; set != nil {
		return set
	}
	set := []metric.RecordOption{metric.WithAttributeSet(attribute.NewSet(
		attribute.String("kit", r.kit), attribute.String("method", name), attribute.String("result", at.word)))}
	next := make(map[result][]metric.RecordOption, len(known)+1)
	maps.Copy(next, known)
	next[at] = set
	r.known.Store(&next)
	return set
}
