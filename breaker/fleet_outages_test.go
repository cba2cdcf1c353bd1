package breaker_test

import (
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-go/holdfast/breaker"
	"github.com/holdfast-go/holdfast/breaker/breakertest"
)

// dependency is what a fleet calls. It knows which probes it has got, and holds
// the fleet to the rules.
type dependency struct {
	sync.Mutex
	t      *testing.T
	config breaker.Config
	up     bool
	silent bool // while it is down it does not answer
	probes map[*inFlight]bool
	good   time.Time // of the last probe that succeeded
	downAt time.Time
	counts struct{ probes, killed, good int }
}

type inFlight struct {
	worker string
	began  time.Time
	killed bool
}

// probe notes that a probe has arrived. S3: no other may be in flight, but one
// whose lease is over, be it that its worker was killed or that it was not
// answered.
func (d *dependency) probe(worker string, killed bool) *inFlight {
	d.Lock()
	defer d.Unlock()
	now := time.Now()
	for p := range d.probes {
		if now.Sub(p.began) < d.config.ProbeTimeout {
			d.t.Errorf("%v: %s probes while %s does since %v (killed: %v)", now, worker, p.worker, now.Sub(p.began), p.killed)
		}
	}
	p := &inFlight{worker, now, killed}
	d.probes[p] = true
	d.counts.probes++
	if killed {
		d.counts.killed++
	}
	return p
}

func (d *dependency) ended(p *inFlight, ok bool) {
	d.Lock()
	defer d.Unlock()
	delete(d.probes, p)
	if ok && time.Since(p.began) < d.config.ProbeTimeout {
		d.counts.good++
		d.good = time.Now()
	}
}

// set ends or begins an outage.
func (d *dependency) set(up, silent bool) {
	d.Lock()
	defer d.Unlock()
	if d.up && !up {
		d.downAt = time.Now()
	}
	d.up, d.silent = up, silent
}

func (d *dependency) state() (up, silent bool) {
	d.Lock()
	defer d.Unlock()
	return d.up, d.silent
}

// recovered holds that no breaker closes in an outage without a good probe.
func (d *dependency) recovered(worker string, tr breaker.Transition) {
	d.Lock()
	defer d.Unlock()
	if tr.To == breaker.Closed && !d.up && !d.good.After(d.downAt) {
		d.t.Errorf("%v: %s closes (%v), and no probe has succeeded since %v", time.Now(), worker, tr.Reason, d.downAt)
	}
}

// fleetRun is a fleet with its dependency and its store.
type fleetRun struct {
	*testing.T
	d     *dependency
	store breaker.Store
	stop  chan struct{}
	wg    sync.WaitGroup
	mu    sync.Mutex
	alive map[*worker]bool
	n     int
}

// start begins a worker, which calls until it is killed or all stop. One that is
// killed while it probes never tells of the end; another takes its place.
func (r *fleetRun) start() {
	r.mu.Lock()
	r.n++
	name, rnd := fmt.Sprint("w", r.n), rand.New(rand.NewPCG(uint64(r.n), 8))
	w := join(r.T, r.store, name, r.d.config)
	w.wire.delay = func() time.Duration { return time.Duration(rand.Int64N(int64(5 * ms))) }
	w.moved = func(tr breaker.Transition) { r.d.recovered(name, tr) }
	r.alive[w] = true
	r.mu.Unlock()
	go func() {
		defer r.wg.Done()
		for {
			select {
			case <-r.stop:
				return
			case <-time.After(time.Duration(50+rnd.IntN(200)) * ms):
			}
			tk, err := w.b().Allow()
			switch {
			case err != nil:
			case tk.Probe() && rnd.IntN(4) == 0:
				r.d.probe(name, true)
				w.wire.mode.Store(cut)
				r.mu.Lock()
				delete(r.alive, w)
				r.mu.Unlock()
				r.wg.Add(1)
				r.start()
				return
			default:
				r.call(name, &tk, rnd)
			}
		}
	}()
}

func (r *fleetRun) call(name string, tk *breaker.Ticket, rnd *rand.Rand) {
	var p *inFlight
	limit := time.Second
	if tk.Probe() {
		p, limit = r.d.probe(name, false), tk.ProbeLimit()
	}
	up, silent := r.d.state()
	took := time.Duration(5+rnd.IntN(50)) * ms
	if !up && silent {
		took = limit
	}
	time.Sleep(took)
	if p != nil {
		r.d.ended(p, up)
	}
	if up {
		done(tk, breaker.Success)
	} else {
		done(tk, breaker.Failure)
	}
}

// workers returns those that are alive.
func (r *fleetRun) workers() []*worker {
	r.mu.Lock()
	defer r.mu.Unlock()
	all := make([]*worker, 0, len(r.alive))
	for w := range r.alive {
		all = append(all, w)
	}
	return all
}

// watch holds each worker against the store: one refresh after the circuit has
// opened or closed there, it is so everywhere.
func (r *fleetRun) watch() {
	defer r.wg.Done()
	var last breaker.Record
	since, apart := time.Now(), map[*worker]int{}
	for {
		select {
		case <-r.stop:
			return
		case <-time.After(20 * ms):
		}
		rec := record(r.T, r.store)
		if rec.Open != last.Open {
			since = time.Now()
		}
		last = rec
		// Two seconds, the command under way and the call that finds it.
		if time.Since(since) < 2*time.Second+20*ms {
			continue
		}
		for _, w := range r.workers() {
			s := w.b().State()
			if (s == breaker.Closed) != rec.Open {
				apart[w] = 0
			} else if apart[w]++; apart[w] > 1 { // once: it has just found out, and tells the store
				r.Errorf("%v: %s is %v; the store has said open = %v for %v", time.Now(), w.name, s, rec.Open, time.Since(since))
			}
		}
	}
}

// S3, S4, D098: twenty workers, two hundred outages, and every fourth probe's
// worker is killed.
func TestS3_TwoHundredOutages(t *testing.T) {
	outages(t, 20, 200, func(*testing.T) breaker.Store { return breakertest.NewMemory() })
}

func outages(t *testing.T, workers, cycles int, store func(*testing.T) breaker.Store) {
	synctest.Test(t, func(t *testing.T) {
		c := breaker.Config{
			Consecutive: 3, Cooldown: time.Second, MaxCooldown: 4 * time.Second, ProbeSuccesses: 2, ProbeTimeout: time.Second,
		}
		d := &dependency{t: t, config: c, up: true, probes: map[*inFlight]bool{}}
		r := &fleetRun{T: t, d: d, store: store(t), stop: make(chan struct{}), alive: map[*worker]bool{}}
		for range workers {
			r.wg.Add(1)
			r.start()
		}
		r.wg.Add(1)
		go r.watch()
		everywhere := func(open bool) bool {
			for _, w := range r.workers() {
				if (w.b().State() == breaker.Closed) == open {
					return false
				}
			}
			return record(t, r.store).Open == open
		}
		reach := func(what string, open bool) {
			begin := time.Now()
			for !everywhere(open) {
				require.Less(t, time.Since(begin), time.Minute, what)
				time.Sleep(50 * ms)
			}
		}
		rnd := rand.New(rand.NewPCG(1, 2))
		for range cycles {
			time.Sleep(time.Duration(rnd.IntN(3000)) * ms)
			d.set(false, rnd.IntN(3) == 0)
			reach("the opening was lost", true)
			time.Sleep(time.Duration(rnd.IntN(6000)) * ms)
			require.True(t, record(t, r.store).Open, "in the outage")
			d.set(true, false)
			reach("it does not close", false)
		}
		close(r.stop)
		r.wg.Wait()
		for _, w := range r.workers() {
			require.Zero(t, w.fleet.Stats().ProbesUnlocked)
			for _, tr := range w.moves.all() {
				require.NotZero(t, tr.Reason)
			}
		}
		t.Logf("%d cycles, %d workers in all, probes: %+v", cycles, r.n, d.counts)
		require.Greater(t, d.counts.killed, cycles/8)
		time.Sleep(2 * time.Minute)
	})
}
