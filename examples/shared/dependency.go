package main

import (
	"net/http"
	"net/http/httptest"
	"sync"
	"time"
)

// probeHeader marks a request as a probe.
const probeHeader = "X-Probe"

// dependency is what the workers call. It counts while it is down.
type dependency struct {
	mu      sync.Mutex
	down    bool
	settled time.Time // in an outage: from here on all workers have had time to find out
	seen    sight
	probing int
}

// sight is what the dependency saw of an outage.
type sight struct {
	requests, probes int // all of them, and those that were probes
	tail             int // requests once the workers had time to find out
	mostProbes       int // at once
}

// took is how long an answer takes.
const took = 40 * time.Millisecond

func (d *dependency) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	probe := r.Header.Get(probeHeader) != ""
	d.mu.Lock()
	down := d.down
	if down {
		d.seen.requests++
		if time.Now().After(d.settled) {
			d.seen.tail++
		}
	}
	if probe {
		if down {
			d.seen.probes++
		}
		d.probing++
		d.seen.mostProbes = max(d.seen.mostProbes, d.probing)
	}
	d.mu.Unlock()
	time.Sleep(took) // it works
	if probe {
		d.mu.Lock()
		d.probing--
		d.mu.Unlock()
	}
	if down {
		w.WriteHeader(http.StatusServiceUnavailable)
	}
}

// set begins or ends the outage.
func (d *dependency) set(down bool, settle time.Duration) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.down, d.settled = down, time.Now().Add(settle)
}

func (d *dependency) sight() sight {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.seen
}

func (d *dependency) start() *httptest.Server { return httptest.NewServer(d) }
