package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"sync"
	"time"

	"github.com/holdfast-go/holdfast/examples/internal/program"
)

// mood is how a provider answers.
type mood int

const (
	well   mood = iota
	silent      // takes requests and answers nothing
	slow        // to the first token
	breaks      // off every second stream half way
)

const (
	tokens     = 10
	toFirst    = 5 * time.Millisecond // token, of a provider that is well
	slowFirst  = 40 * time.Millisecond
	betweenTwo = 4 * time.Millisecond
)

// probeHeader tells the provider which requests are a breaker's probes, so that it can
// count them by itself.
const probeHeader = "X-Probe"

// provider serves one channel: completions as a stream of server-sent events.
type provider struct {
	name, key string

	mu   sync.Mutex
	mood mood
	hits []arrival
}

// arrival is a request that reached the provider.
type arrival struct {
	at    time.Time
	probe bool
}

func (p *provider) turn(m mood) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.mood = m
}

// arrivals returns the requests so far.
func (p *provider) arrivals() []arrival {
	p.mu.Lock()
	defer p.mu.Unlock()
	return append([]arrival(nil), p.hits...)
}

func (p *provider) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var body struct{ Model string }
	if err := json.NewDecoder(r.Body).Decode(&body); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	if r.Header.Get("Authorization") != "Bearer "+p.key {
		http.Error(w, "wrong key", http.StatusUnauthorized)
		return
	}
	p.mu.Lock()
	p.hits = append(p.hits, arrival{time.Now(), r.Header.Get(probeHeader) != ""})
	mood, n := p.mood, len(p.hits)
	p.mu.Unlock()

	w.Header().Set("Content-Type", "text/event-stream")
	w.WriteHeader(http.StatusOK)
	out := http.NewResponseController(w)
	_ = out.Flush()
	pause := toFirst
	switch mood {
	case silent:
		<-r.Context().Done()
		return
	case slow:
		pause = slowFirst
	}
	for i := range tokens {
		if program.Pause(r.Context(), pause) != nil {
			return
		}
		if mood == breaks && n%2 == 0 && i == tokens/2 {
			panic(http.ErrAbortHandler)
		}
		fmt.Fprintf(w, "data: {\"model\":%q,\"choices\":[{\"delta\":{\"content\":\"%s%d \"}}]}\n\n", body.Model, p.name, i)
		if out.Flush() != nil {
			return
		}
		pause = betweenTwo
	}
	fmt.Fprint(w, "data: [DONE]\n\n")
}
