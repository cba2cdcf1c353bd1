package main

import (
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/breaker"
	"github.com/holdfast-go/holdfast/examples/outage/sim"
	"github.com/holdfast-go/holdfast/retry"
	"github.com/holdfast-go/holdfast/timeout"
)

// The published experiment. Its dependency answers in 50 ms, and from 10 s to 40 s
// it answers nothing.
const (
	threads = 40
	rate    = 50 // of A and of B, a second
	bTakes  = 5 * time.Millisecond
	latency = 50 * time.Millisecond
	lasts   = 60 * time.Second
	from    = 10 * time.Second
	to      = 40 * time.Second
	patient = 2 * time.Second // how long the caller waits for an attempt
)

// silence is its course.
func silence() sim.Setup {
	return sim.Setup{
		Threads: threads, A: rate, B: rate, BTakes: bTakes, Lasts: lasts, From: from, To: to,
		Dependency: func(sim.Chance) sim.Dependency { return sim.Silent{Latency: latency, From: from, To: to} },
	}
}

// articleBreaker is its breaker, for calls that take that long at most.
func articleBreaker(call time.Duration) *breaker.Config {
	return &breaker.Config{
		Window: breaker.Window{Calls: 20}, MinCalls: 10, FailureRate: 0.5,
		Cooldown: 5 * time.Second, CooldownFactor: 1, Jitter: breaker.NoJitter,
		Probes: 3, ProbeSuccesses: 3, ProbeTimeout: call,
	}
}

// three is its retry: 3 attempts, no wait between them.
func three() *retry.Policy {
	return &retry.Policy{MaxAttempts: 3, Backoff: retry.NoWait(), Budget: retry.NoBudget()}
}

// published is a row of its table. B is what arrived in the outage: it gives no
// shares.
type published struct {
	downstream, bServed                int
	aOK, aFailed, aFastFail, aRejected int
	firstOpen, lastClose               float64 // s; 0 is never
	transitions                        int
}

// publishedB is how many B arrived in its outage.
const publishedB = 1567

// articleRows are its six rows. The breakers and the retries are wired by hand
// here, as they are there: what retries knows nothing of probes.
func articleRows() []row {
	wired := func(wait time.Duration, b *breaker.Config, r *retry.Policy) sim.Client {
		return sim.Client{
			Policy:  holdfast.Policy{Timeout: &timeout.Limits{Attempt: wait}, Breaker: b, Retry: r},
			Unaware: true,
		}
	}
	around := wired(patient, nil, three())
	around.Around = articleBreaker(3 * patient) // the whole call is what its breaker sees
	return []row{
		{
			name: "no breaker", setup: silence(), client: wired(patient, nil, nil),
			article: &published{downstream: 600, bServed: 619, aOK: 1494, aFailed: 600, aRejected: 972},
		},
		{
			name: "breaker", setup: silence(), client: wired(patient, articleBreaker(patient), nil),
			article: &published{
				downstream: 60, bServed: 1499, aOK: 1239, aFailed: 60, aFastFail: 1707, aRejected: 60,
				firstOpen: 12.28, lastClose: 45.50, transitions: 11,
			},
		},
		{
			name: "breaker, timeout 30 s", setup: silence(),
			client: wired(30*time.Second, articleBreaker(30*time.Second), nil),
			article: &published{
				downstream: 40, bServed: 42, aOK: 1254, aFailed: 40, aFastFail: 259, aRejected: 1513,
				firstOpen: 40.39, lastClose: 45.50, transitions: 3,
			},
		},
		{
			name: "3 attempts, no breaker", setup: silence(), client: wired(patient, nil, three()),
			article: &published{downstream: 600, bServed: 205, aOK: 1507, aFailed: 200, aRejected: 1359},
		},
		{
			name: "Retry(CB), 3 attempts", setup: silence(), client: wired(patient, articleBreaker(patient), three()),
			article: &published{
				downstream: 61, bServed: 1492, aOK: 1239, aFastFail: 1759, aRejected: 68,
				firstOpen: 12.28, lastClose: 45.50, transitions: 11,
			},
		},
		{
			name: "CB(Retry), 3 attempts", setup: silence(), client: around,
			article: &published{
				downstream: 165, bServed: 1275, aOK: 1353, aFailed: 55, aFastFail: 1393, aRejected: 265,
				firstOpen: 16.28, lastClose: 43.39, transitions: 7,
			},
		},
	}
}
