package main

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

const msec = time.Millisecond

func TestPercentile(t *testing.T) {
	hundred := make([]time.Duration, 100)
	for i := range hundred {
		hundred[i] = time.Duration(i + 1)
	}
	for _, step := range []struct {
		sorted []time.Duration
		p      int
		want   time.Duration
	}{
		{nil, 99, 0},
		{[]time.Duration{7}, 50, 7},
		{[]time.Duration{7}, 99, 7},
		{[]time.Duration{1, 2}, 50, 1},
		{[]time.Duration{1, 2}, 51, 2},
		{[]time.Duration{1, 2, 3}, 50, 2},
		{hundred, 50, 50},
		{hundred, 99, 99},
		{hundred, 100, 100},
		{hundred, 0, 1},
		{hundred[:99], 99, 99}, // of 98.01 the next whole one
	} {
		require.Equal(t, step.want, percentile(step.sorted, step.p), "p%d of %v", step.p, step.sorted)
	}
}

// ending returns calls that end every 10 ms from a time on.
func ending(from time.Duration, n int, o outcome) []sample {
	var samples []sample
	for i := range n {
		end := from + time.Duration(i)*10*msec
		samples = append(samples, sample{end - msec, end, o})
	}
	return samples
}

func join(parts ...[]sample) (all []sample) {
	for _, p := range parts {
		all = append(all, p...)
	}
	return all
}

func TestRecovery(t *testing.T) {
	const healed = time.Second
	for name, step := range map[string]struct {
		samples          []sample
		first, recovered time.Duration
	}{
		"no calls":    {nil, -1, -1},
		"never again": {ending(healed, 100, refused), -1, -1},
		"at once":     {ending(healed, 100, ok), 0, 0},
		"before the recovery does not count": {
			join(ending(0, 100, ok), ending(healed, 100, failed)), -1, -1,
		},
		"after a while": {
			join(ending(healed, 20, refused), ending(healed+200*msec, 100, ok)), 200 * msec, 200 * msec,
		},
		"one probe, then more refusals": {
			join(ending(healed, 10, refused), ending(healed+100*msec, 1, ok), ending(healed+110*msec, 10, refused), ending(healed+210*msec, 100, ok)),
			100 * msec, 210 * msec,
		},
		// Fifty calls end in a window, so that one bad one is 2 %.
		"a relapse counts": {
			join(ending(healed, 100, ok), ending(healed+1000*msec, 1, failed), ending(healed+1010*msec, 100, ok)),
			0, 1010 * msec,
		},
		"one in a hundred is forgiven": {
			join(ending(healed, 100, ok), ending(healed+msec, 100, ok), ending(healed+1000*msec, 1, failed), ending(healed+1001*msec, 99, ok), ending(healed+1002*msec, 99, ok)),
			0, 0,
		},
		"a run too short to tell":  {ending(healed, 50, ok), 0, -1},
		"just long enough to tell": {ending(healed, 51, ok), 0, 0},
		"a relapse at the very end": {
			join(ending(healed, 100, ok), ending(healed+1000*msec, 60, failed)), 0, -1,
		},
	} {
		t.Run(name, func(t *testing.T) {
			first, recovered := recovery(step.samples, healed)
			require.Equal(t, step.first, first, "first")
			require.Equal(t, step.recovered, recovered, "recovered")
		})
	}
}

// The scan with two ends agrees with the definition, written down as it reads.
func TestRecoveryIsAsDefined(t *testing.T) {
	byDefinition := func(samples []sample) time.Duration {
		last := samples[len(samples)-1].end
		found := time.Duration(-1)
		for i := len(samples) - 1; i >= 0; i-- {
			from := samples[i].end
			if last < from+recoveryWindow {
				continue
			}
			good, all := 0, 0
			for _, s := range samples[i:] {
				if s.end < from+recoveryWindow {
					all++
					if s.outcome == ok {
						good++
					}
				}
			}
			if good*100 < all*recoveryPercent {
				break
			}
			if samples[i].outcome == ok {
				found = from
			}
		}
		return found
	}
	seed := uint32(1)
	for range 200 {
		var samples []sample
		at := time.Duration(0)
		for range 400 {
			seed = seed*1664525 + 1013904223
			at += time.Duration(1+seed>>28) * msec
			o := ok
			if seed>>8%uint32(1+len(samples)/2) == 0 {
				o = failed
			}
			samples = append(samples, sample{0, at, o})
		}
		_, recovered := recovery(samples, 0)
		require.Equal(t, byDefinition(samples), recovered)
	}
}

func TestFigures(t *testing.T) {
	c := &course{
		silenced: 100 * msec, healed: 200 * msec, hits: 7,
		samples: []sample{
			{90 * msec, 300 * msec, failed},       // began before the silence
			{100 * msec, 101 * msec, refused},     // at its very start
			{150 * msec, 190 * msec, failed},      //
			{199 * msec, 205 * msec, ok},          // ended after it
			{200 * msec, 1200*msec + 1, ok},       // began after it
			{201 * msec, 1201*msec + 400, failed}, //
		},
	}
	got := c.figures()
	require.Equal(t, figures{
		Calls: 6, OK: 2, Failed: 3, Refused: 1, OutageHits: 7,
		OutageP50: 6, OutageP99: 40, outageMax: 40, FirstOK: new(5.0),
	}, got)
}
