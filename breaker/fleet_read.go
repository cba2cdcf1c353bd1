package breaker

import (
	"context"
	"math"
	"time"

	"github.com/holdfast-go/holdfast/internal/mono"
)

// refresh reads what has changed and takes it in.
func (f *Fleet) refresh() { f.read(time.Duration(math.MaxInt64)) }

// read is refresh within a time, at the end of which it takes in what it has and
// leaves the rest to the next. It returns false if there is a rest.
func (f *Fleet) read(within time.Duration) (whole bool) {
	f.mu.Lock()
	c := &f.cycle
	after := f.mark
	if c.count++; c.count >= wholeEvery {
		after = Mark{}
	}
	f.mu.Unlock()

	var news Changes
	begin := mono.Now()
	for first, more := true, true; more; first = false {
		left := min(within-mono.Now().Sub(begin), f.set.Timeout)
		if left <= 0 {
			return f.leave(&news)
		}
		ch, err := askFor(f, left, mostInFlight, func(ctx context.Context) (Changes, error) {
			return f.set.Store.Changes(ctx, f.set.Space, after)
		})
		switch {
		case err != nil && !first && mono.Now().Sub(begin) >= within:
			return f.leave(&news)
		case err != nil:
			f.failed(err)
			return true
		}
		if first || ch.Epoch != news.Epoch { // or all began anew between two pages
			news = Changes{Whole: ch.Whole}
		}
		news.Mark, news.Records = ch.Mark, append(news.Records, ch.Records...)
		after, more = ch.Mark, ch.More && ch.Mark != after // of a page's records none may be left
	}
	f.take(&news, mono.Now())
	f.answers()
	f.resend()
	return true
}

// leave takes in the first pages of what there is: nothing follows from what is not on
// them.
func (f *Fleet) leave(news *Changes) (whole bool) {
	news.Whole = false
	f.take(news, mono.Now())
	return false
}

// take brings the local knowledge and the breakers up to what was read.
func (f *Fleet) take(news *Changes, now mono.Instant) {
	f.mu.Lock()
	old := f.mark
	anew := old.Epoch != 0 && (news.Epoch != old.Epoch || news.Revision < old.Revision)
	if anew {
		f.era.Add(1) // what was known before is no measure any more
	}
	era := f.era.Load()
	var deliver []*Record
	var again []known
	listed := make(map[string]bool, len(news.Records))
	for i := range news.Records {
		rec := &news.Records[i]
		k, had := f.known[rec.Key]
		switch {
		case had && k.Forced && !rec.Forced && k.Revision > rec.Revision:
			listed[rec.Key] = true // the store has lost the order, or was quicker asked than told
			again = append(again, k)
			continue
		case had && k.era == era && k.Revision > rec.Revision, !anew && f.over[rec.Key] > rec.Revision:
			listed[rec.Key] = true // an answer to this worker was quicker
			continue
		case rec.live():
			listed[rec.Key] = true
			f.known[rec.Key] = known{*rec, era, now}
		default:
			delete(f.known, rec.Key)
			if !had && (anew || rec.Revision <= old.Revision) {
				continue // it closed before anybody here knew
			}
		}
		deliver = append(deliver, rec)
	}
	var lost []known
	if news.Whole {
		f.cycle.count = 0
		for key, k := range f.known {
			switch {
			case listed[key]:
			case k.Forced && (anew || k.Keep > now.Sub(k.at)):
				again = append(again, k)
			default:
				delete(f.known, key)
				lost = append(lost, k)
			}
		}
	}
	f.mark = news.Mark
	clear(f.over)
	f.mu.Unlock()

	for i := range lost {
		if over := f.missed(&lost[i].Record); over != nil {
			deliver = append(deliver, over)
		}
	}
	for i := range again {
		f.forceAgain(&again[i].Record)
	}
	// Only at the end: what a breaker finds from then on is newer.
	defer f.revision.Store(news.Revision)
	f.deliverAll(deliver, now)
}

// deliverAll delivers records one after the other, also if a hook ends the
// goroutine.
func (f *Fleet) deliverAll(list []*Record, now mono.Instant) {
	defer func() {
		if len(list) > 0 {
			f.deliverAll(list, now)
		}
	}()
	for len(list) > 0 {
		rec := list[0]
		list = list[1:]
		f.aside(func() { f.deliver(rec, now) })
	}
}
