package shop

import (
	"context"
	"maps"
	"sync"
)

// Gate stands at a server's entrance. It counts who comes and, while the
// server is silent, keeps everybody waiting.
type Gate struct {
	mu    sync.Mutex
	over  chan struct{} // nil while the server speaks; closed when it speaks again
	hits  map[string]int
	total int

	waiting int
}

// Silence says whether the server is silent. Then its handlers take requests
// and answer nothing, until the request's context ends or the silence is over;
// in the latter case they answer as usual.
func (g *Gate) Silence(on bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	switch {
	case on && g.over == nil:
		g.over = make(chan struct{})
	case !on && g.over != nil:
		close(g.over)
		g.over = nil
	}
}

// Hits returns how many requests reached a handler, silent or not. A stream is
// one.
func (g *Gate) Hits() int {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.total
}

// HitsByMethod returns the hits of each method, by "/shop.v1.Catalog/GetItem"
// or "GET /items/{id}".
func (g *Gate) HitsByMethod() map[string]int {
	g.mu.Lock()
	defer g.mu.Unlock()
	return maps.Clone(g.hits)
}

// Waiting returns how many handlers the silence keeps at this moment.
func (g *Gate) Waiting() int {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.waiting
}

// enter counts a request and waits until the server speaks. It fails with the
// context's error.
func (g *Gate) enter(ctx context.Context, method string) error {
	g.mu.Lock()
	if g.hits == nil {
		g.hits = map[string]int{}
	}
	g.hits[method]++
	g.total++
	g.mu.Unlock()
	return g.wait(ctx)
}

func (g *Gate) wait(ctx context.Context) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.waiting++
	defer func() { g.waiting-- }()
	for g.over != nil {
		over := g.over
		g.mu.Unlock()
		select {
		case <-over:
		case <-ctx.Done():
		}
		g.mu.Lock()
		if ctx.Err() != nil {
			return ctx.Err()
		}
	}
	return nil
}
