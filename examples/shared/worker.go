package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/breaker"
	"github.com/holdfast-go/holdfast/breaker/redisstore"
	"github.com/holdfast-go/holdfast/call"
	"github.com/holdfast-go/holdfast/httpmw"
	"github.com/holdfast-go/holdfast/retry"
	"github.com/holdfast-go/holdfast/timeout"
)

// newKit is what an application does: the sharing is one field of the kit's
// configuration. Without a store each worker is by itself.
func newKit(store string, tell func(breaker.Transition)) (*holdfast.Kit, error) {
	c := holdfast.Config{
		Name: "catalog",
		Default: holdfast.Policy{
			Retry:   retry.Off(),
			Timeout: &timeout.Limits{Attempt: time.Second, Total: time.Second},
			Breaker: &breaker.Config{
				Consecutive: 5,
				Cooldown:    400 * time.Millisecond, MaxCooldown: 800 * time.Millisecond,
				ProbeSuccesses: 2,
				Hooks:          breaker.Hooks{Transition: tell},
			},
		},
		Hooks: holdfast.Hooks{Attempt: func(_ context.Context, a call.Attempt) (context.Context, func(call.Result)) {
			if a.Probe {
				a.Header.Set(probeHeader, "1") // so that the dependency can count them
			}
			return nil, nil
		}},
	}
	if store != "" {
		client := redis.NewClient(&redis.Options{Addr: store, ContextTimeoutEnabled: true})
		s, err := redisstore.New(client, redisstore.Options{Prefix: "holdfast-example"})
		if err != nil {
			return nil, err
		}
		c.Shared = &breaker.Sharing{Store: s, Push: true}
	}
	return holdfast.New(c)
}

// orders is the variable of the environment that makes a process a worker, and
// tells it what to do.
const orders = "HOLDFAST_SHARED_EXAMPLE_WORKER"

// task is what a worker is told.
type task struct {
	URL   string // of the dependency
	Store string // address of the store; empty is none
}

// event is what a worker tells: a change of its breaker's state.
type event struct {
	At int64 // microseconds of the machine's clock, which all have
	To breaker.State
}

// work makes calls until its standard input ends.
func work(text string, stdin io.Reader, stdout io.Writer) error {
	var t task
	if err := json.Unmarshal([]byte(text), &t); err != nil {
		return err
	}
	var mu sync.Mutex
	out := json.NewEncoder(stdout)
	kit, err := newKit(t.Store, func(tr breaker.Transition) {
		mu.Lock()
		defer mu.Unlock()
		_ = out.Encode(event{time.Now().UnixMicro(), tr.To})
	})
	if err != nil {
		return err
	}
	fmt.Fprintln(stdout) // ready
	ctx, stop := context.WithCancel(context.Background())
	go func() {
		_, _ = io.Copy(io.Discard, stdin)
		stop()
	}()
	client := &http.Client{Transport: httpmw.NewTransport(nil, kit)}
	var callers sync.WaitGroup
	for range 3 {
		callers.Go(func() {
			for tick := time.NewTicker(15 * time.Millisecond); ctx.Err() == nil; <-tick.C {
				req, err := http.NewRequestWithContext(ctx, http.MethodGet, t.URL, nil)
				if err != nil {
					return
				}
				if resp, err := client.Do(req); err == nil {
					_, _ = io.Copy(io.Discard, resp.Body)
					_ = resp.Body.Close()
				}
			}
		})
	}
	callers.Wait()
	return nil
}
