package breakertest

import (
	"maps"
	"time"

	"github.com/holdfast-go/holdfast/breaker"
)

// row is a record as the memory store keeps it. Its times are those of the
// store's clock.
type row struct {
	revision, generation uint64
	open                 bool
	opened               time.Duration
	cooldown             time.Duration
	nth, good, bad       int
	reason               breaker.Reason
	worker               string

	holder  string
	held    time.Duration // since
	lease   time.Duration
	forced  bool
	note    string
	reports map[string]time.Duration // by worker, until when
	expires time.Duration
}

func (r *row) clone() *row {
	c := *r
	c.reports = maps.Clone(r.reports)
	return &c
}

// record is what the store tells of r at now.
func (r *row) record(key string, epoch uint64, now time.Duration) breaker.Record {
	rec := breaker.Record{
		Key: key, Mark: breaker.Mark{Epoch: epoch, Revision: r.revision}, Generation: r.generation,
		Open: r.open, Forced: r.forced, Note: r.note, Keep: r.expires - now,
	}
	if r.open {
		rec.Age, rec.Cooldown = max(now-r.opened, 0), r.cooldown
		rec.Left = min(max(r.opened+r.cooldown-now, 0), r.cooldown)
		rec.Nth, rec.Reason, rec.Worker = r.nth, r.reason, r.worker
		rec.Good, rec.Bad = r.good, r.bad
	}
	if r.locked(now) {
		rec.Holder, rec.Lease = r.holder, min(r.held+r.lease-now, r.lease)
	}
	for _, until := range r.reports {
		if now < until {
			rec.Reports++
		}
	}
	return rec
}

// locked reports whether the lock is held at now. One that was taken later than
// now, since the clock was put back, is held for its whole length once more.
func (r *row) locked(now time.Duration) bool {
	if r.holder == "" {
		return false
	}
	r.held = min(r.held, now)
	return now < r.held+r.lease
}

func (r *row) unlock() { r.holder, r.held, r.lease = "", 0, 0 }

// openBy opens r by o; the caller has made revision the next one.
func (r *row) openBy(o *breaker.Opening, now time.Duration) {
	r.open, r.opened, r.cooldown = true, now-(o.Cooldown-o.Left), o.Cooldown
	r.nth, r.reason, r.worker = o.Nth, o.Reason, o.Worker
	r.good, r.bad, r.reports = 0, 0, nil
	r.unlock()
	r.generation = r.revision
}

// report notes that o's worker is in trouble, and reports whether enough are.
func (r *row) report(o *breaker.Opening, now time.Duration) bool {
	if o.Quorum <= 1 {
		return true
	}
	if r.reports == nil {
		r.reports = map[string]time.Duration{}
	}
	for worker, until := range r.reports {
		if until <= now {
			delete(r.reports, worker)
		}
	}
	r.reports[o.Worker] = now + o.Left + (o.Keep-o.Left)/2
	return len(r.reports) >= o.Quorum
}
