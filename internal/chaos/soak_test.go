package chaos

import (
	"context"
	"flag"
	"fmt"
	"maps"
	"math/rand/v2"
	"net/http"
	"runtime"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/call"
)

var (
	soakFor  = flag.Duration("soak", 8*time.Second, "how long the soak test runs")
	soakSeed = flag.Uint64("seed", 0, "what the soak test draws from; 0 draws one")
)

// TestMain gives a soak its time and a minute more, where go test's own limit, of ten
// minutes, would end it first. The go command waits a minute longer than its limit: for
// more than ten give it a -timeout.
func TestMain(m *testing.M) {
	flag.Parse()
	limit := flag.Lookup("test.timeout").Value
	least := *soakFor + time.Minute
	if d := limit.(flag.Getter).Get().(time.Duration); 0 < d && d < least {
		_ = limit.Set(least.String())
	}
	m.Run()
}

// mustHappen is what a soak of 20 s has seen, or it proves less than it says.
var mustHappen = []string{
	"repeats", "hedges", "hedges that won", "moves to another upstream", "waits for a permit",
	"answers of fallbacks, stale", "answers of fallbacks, computed", "fallbacks that failed",
	"transitions to open", "transitions to half_open", "transitions to closed", "transitions to forced_open",
	"probes succeeded", "probes failed", "times that the store went away", "times that the store came back",
}

// TestSoak is in real time, with real sockets: what it looks for is what virtual
// time and an orderly wire do not show.
func TestSoak(t *testing.T) {
	seed := *soakSeed
	if seed == 0 {
		seed = rand.Uint64()
	}
	t.Logf("go test ./internal/chaos -run Soak -soak %v -seed %d", *soakFor, seed)
	before := runtime.NumGoroutine()
	l := newLedger()
	members := soak(t, l, seed, *soakFor)

	var amiss []string
	settles(func() bool {
		if amiss = l.held(); !l.calls.even() || !l.attempts.even() || !l.bodies.even() {
			amiss = append(amiss, fmt.Sprintf("calls: %s; attempts: %s; bodies: %s", &l.calls, &l.attempts, &l.bodies))
		}
		amiss = append(amiss, l.spans.amiss(l.calls.begun.Load(), l.attempts.begun.Load())...)
		for _, m := range members {
			amiss = append(amiss, m.unbooked()...)
		}
		return len(amiss) == 0
	})
	for _, of := range [][]string{l.found(), l.repeated(), amiss} {
		for _, text := range of {
			t.Error(text)
		}
	}
	for _, what := range mustHappen {
		if l.times(what) == 0 && *soakFor >= 20*time.Second {
			t.Errorf("there were no %s", what)
		}
	}
	if !settles(func() bool { return runtime.NumGoroutine() <= before+1 }) { // the runtime may have started one of its own
		stacks := make([]byte, 1<<20)
		t.Errorf("%d goroutines, %d before:\n%s", runtime.NumGoroutine(), before, stacks[:runtime.Stack(stacks, true)])
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, counts := range []map[string]int{l.happened, l.outcomes} {
		for _, what := range slices.Sorted(maps.Keys(counts)) {
			t.Logf("%7d  %s", counts[what], what)
		}
	}
	t.Logf("%7d calls with %d attempts", l.calls.begun.Load(), l.attempts.begun.Load())
}

// settles waits for what other goroutines are about to do.
func settles(done func() bool) bool {
	for deadline := time.Now().Add(5 * time.Second); time.Now().Before(deadline); time.Sleep(20 * time.Millisecond) {
		if done() {
			return true
		}
	}
	return done()
}

func soak(t *testing.T, l *ledger, seed uint64, length time.Duration) []*member {
	s := newStage(t, l, seed)
	ctx, stop := context.WithTimeout(t.Context(), length)
	defer stop()
	var callers, causes sync.WaitGroup
	for n := range 12 {
		c := s.client(fmt.Sprint(n), 100+n)
		callers.Go(func() { c.run(ctx) })
	}
	s.harm(ctx, &causes)
	callers.Wait()
	causes.Wait()
	s.recover(t)
	s.close(t)
	return s.members
}

// recover makes fair weather, with nothing forced: everything serves again.
func (s *stage) recover(t *testing.T) {
	for _, p := range s.proxies() {
		p.weather.Store(&calm)
	}
	for n, m := range s.members {
		require.NoError(t, m.kit.Update(m.recovered(m.config(s.source(500+n), s.ledger))))
		for _, b := range s.ledger.visit(m.kit) {
			b.ForceOpen("chaos")
			b.Release()
			b.Enable()
		}
		require.True(t, m.forced == "" || settles(func() bool { return m.kit.Fleet().Release(t.Context(), m.forced) == nil }))
	}
	c := s.client("last", 600)
	for n, web := range s.webs {
		row(t, fmt.Sprint("HTTP client ", n), func(n int) error {
			req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, c.url, nil)
			if err != nil {
				return err
			}
			req.Header.Set("X-Order", order{id: fmt.Sprint("row-", n), code: 200, pieces: 2}.String())
			resp, err := web.Do(req)
			if err != nil {
				return err
			}
			return resp.Body.Close()
		})
	}
	for n, cc := range s.conns {
		row(t, fmt.Sprint("gRPC connection ", n), func(n int) error {
			_, err := c.stream(t.Context(), cc, service+"Feed", "Feed", order{id: fmt.Sprint("row-", n)}, nil)
			if err == errLeft {
				err = nil
			}
			return err
		})
	}
	for _, m := range c.workers {
		row(t, m.name, func(n int) error {
			_, err := holdfast.Do(t.Context(), m.kit, call.Info{Target: "store", Method: "any"}, func(ctx context.Context) (string, error) {
				return c.place(ctx, http.MethodGet, order{id: fmt.Sprint("row-", n), code: 200, pieces: 2})
			})
			return err
		})
	}
}

// row asks until 20 calls in a row succeed.
func row(t *testing.T, who string, do func(n int) error) {
	t.Helper()
	var last error
	good := 0
	for n, deadline := 0, time.Now().Add(20*time.Second); good < 20 && time.Now().Before(deadline); n++ {
		if err := do(n); err != nil {
			last, good = err, 0
			time.Sleep(20 * time.Millisecond) // real time: breakers take some to close
			continue
		}
		good++
	}
	require.Equal(t, 20, good, "%s does not recover: %v", who, last)
}
