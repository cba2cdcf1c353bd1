package main

import (
	"cmp"
	"slices"
	"time"
)

// figures is what a run comes to. Its JSON form is the program's output.
type figures struct {
	Calls   int `json:"calls"`
	OK      int `json:"ok"`
	Failed  int `json:"failed"`
	Refused int `json:"refused"`

	// OutageHits is how many requests reached the server in the silence.
	OutageHits int `json:"outage_hits"`

	// How long the callers waited whose call began in the silence, however it
	// ended and when. All of them count: the first ones too, which ran into the
	// silence before the breaker knew, and the probes.
	OutageP50 float64 `json:"outage_p50_ms"`
	OutageP99 float64 `json:"outage_p99_ms"`

	outageMax float64 // the longest of these waits, in milliseconds

	// FirstOK is the time from the server's recovery to the end of the first
	// call that succeeded, in milliseconds; null if none did.
	FirstOK *float64 `json:"first_ok_ms"`

	// Recovered is the time from the server's recovery to the end of the first
	// call that succeeded from which on at least 99 % of the calls that end in
	// any 500 ms succeed, in milliseconds; null if that never came.
	Recovered *float64 `json:"recovered_ms"`
}

const (
	recoveryWindow  = 500 * time.Millisecond
	recoveryPercent = 99
)

func (c *course) figures() figures {
	f := figures{Calls: len(c.samples), OutageHits: c.hits}
	var waits []time.Duration
	for _, s := range c.samples {
		switch s.outcome {
		case ok:
			f.OK++
		case failed:
			f.Failed++
		case refused:
			f.Refused++
		}
		if s.begin >= c.silenced && s.begin < c.healed {
			waits = append(waits, s.end-s.begin)
		}
	}
	slices.Sort(waits)
	f.OutageP50 = ms(percentile(waits, 50))
	f.OutageP99 = ms(percentile(waits, 99))
	f.outageMax = ms(percentile(waits, 100))

	first, recovered := recovery(c.samples, c.healed)
	if first >= 0 {
		f.FirstOK = new(ms(first))
	}
	if recovered >= 0 {
		f.Recovered = new(ms(recovered))
	}
	return f
}

// percentile returns the least of the sorted values that at least p of 100 do
// not exceed, 0 if there are none.
func percentile(sorted []time.Duration, p int) time.Duration {
	if len(sorted) == 0 {
		return 0
	}
	rank := (len(sorted)*p + 99) / 100
	return sorted[max(rank, 1)-1]
}

// recovery returns how long after healed the first call succeeded, and from when
// on calls did so for good. Either is negative if it never came.
func recovery(samples []sample, healed time.Duration) (first, recovered time.Duration) {
	first, recovered = -1, -1
	after := slices.DeleteFunc(slices.Clone(samples), func(s sample) bool { return s.end < healed })
	slices.SortFunc(after, func(a, b sample) int { return cmp.Compare(a.end, b.end) })
	if i := slices.IndexFunc(after, func(s sample) bool { return s.outcome == ok }); i >= 0 {
		first = after[i].end - healed
	}

	// The windows that begin at a call's end, the last one first. A window that
	// reaches beyond the run is not judged, or a single success at the end would
	// be a recovery.
	good, beyond := 0, len(after) // good of after[i:beyond]
	for i := len(after) - 1; i >= 0; i-- {
		if after[i].outcome == ok {
			good++
		}
		whole := beyond < len(after)
		for beyond > i && after[beyond-1].end >= after[i].end+recoveryWindow {
			beyond--
			whole = true
			if after[beyond].outcome == ok {
				good--
			}
		}
		switch {
		case !whole:
			continue
		case good*100 < (beyond-i)*recoveryPercent:
			return first, recovered
		case after[i].outcome == ok:
			recovered = after[i].end - healed
		}
	}
	return first, recovered
}

// ms returns d in milliseconds, to the microsecond.
func ms(d time.Duration) float64 {
	return float64(d.Round(time.Microsecond)) / float64(time.Millisecond)
}
