package main

import (
	"bytes"
	"encoding/json"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// seen returns a course of 11 s, and its short story.
func seen(samples ...sample) *course {
	c := newCourse(plan{workers: 1, healthy: time.Second, silent: 5 * time.Second, healed: 5 * time.Second})
	c.silenced, c.healed, c.hits, c.samples = time.Second, 6*time.Second, 3, samples
	for _, s := range samples {
		c.strip.add(s)
	}
	return c
}

func someReport() report {
	bare := seen(join(ending(0, 100, ok), ending(2*time.Second, 2, failed), ending(6*time.Second, 400, ok))...)
	kit := seen(join(ending(0, 100, ok), ending(1500*msec, 300, refused), ending(7*time.Second, 200, ok))...)
	never := seen(ending(0, 10, ok)...)
	return report{plan: bare.plan, http: pair{bare, kit}, grpc: pair{bare, never}}
}

func TestTheJSONIsOneObjectOfTheKnownKeys(t *testing.T) {
	var out bytes.Buffer
	require.NoError(t, someReport().writeJSON(&out))
	decoder := json.NewDecoder(&out)
	var got map[string]map[string]map[string]*float64
	require.NoError(t, decoder.Decode(&got))
	_, err := decoder.Token()
	require.Equal(t, io.EOF, err)

	require.Len(t, got, 2)
	for _, wire := range []string{"http", "grpc"} {
		require.Len(t, got[wire], 2)
		for _, kind := range []string{"bare", "kit"} {
			var keys []string
			for key := range got[wire][kind] {
				keys = append(keys, key)
			}
			require.ElementsMatch(t, []string{
				"calls", "ok", "failed", "refused", "outage_hits",
				"outage_p50_ms", "outage_p99_ms", "first_ok_ms", "recovered_ms",
			}, keys)
		}
	}
	require.Equal(t, 600.0, *got["http"]["kit"]["calls"])
	require.Equal(t, 300.0, *got["http"]["kit"]["refused"])
	require.Equal(t, 1000.0, *got["http"]["kit"]["recovered_ms"])
	require.Nil(t, got["grpc"]["kit"]["first_ok_ms"], "null, for it never came")
}

func TestTheTable(t *testing.T) {
	var out bytes.Buffer
	require.NoError(t, someReport().writeText(&out))
	for _, want := range []string{
		"                                                  http bare   http kit  grpc bare   grpc kit\n",
		"calls                                                   502        600        502         10\n",
		"failed                                                    2          0          2          0\n",
		"refused                                                   0        300          0          0\n",
		"requests that reached the server in the silence           3          3          3          3\n",
		"from the recovery to 99 % success                   0.000 s    1.000 s    0.000 s      never\n",
		"http kit   ++++.------------........++++++++.......\n",
	} {
		require.Contains(t, out.String(), want)
	}
	for line := range strings.Lines(out.String()) {
		require.LessOrEqual(t, len(line), 101, line)
	}
}

func TestTheStrip(t *testing.T) {
	s := newStrip(40 * time.Second) // a second for each character
	for cell, outcomes := range map[int][]outcome{
		0: {ok, ok},
		1: {failed},
		2: {refused},
		3: {ok, failed, failed, refused},
		4: {ok, failed, refused, refused},
		5: append(make([]outcome, 99), failed), // 99 % are ok
		6: append(make([]outcome, 98), failed),
		7: {failed, refused}, // a tie
	} {
		for _, o := range outcomes {
			s.add(sample{end: time.Duration(cell)*time.Second + 1, outcome: o})
		}
	}
	s.add(sample{end: time.Hour, outcome: ok}) // a late one is part of the end
	require.Equal(t, "+x-x-+x-...............................+", s.String())
	require.Equal(t, [outcomes]int64{202, 7, 5}, s.counts())
}

func TestAPictureLeavesTheFutureBlank(t *testing.T) {
	p := plan{healthy: 10 * time.Second, silent: 20 * time.Second, healed: 10 * time.Second}
	courses := map[string]*course{"http": newCourse(p), "grpc": newCourse(p)}
	courses["http"].strip.add(sample{end: time.Second, outcome: ok})
	require.Equal(t, ""+
		"bare client |up       |silent             |up again       ok  failed refused\n"+
		"       http .+.                                            1       0       0\n"+
		"       grpc ...                                            0       0       0\n",
		picture("bare", p, 2*time.Second, courses))
}

func TestBadArguments(t *testing.T) {
	for _, args := range [][]string{{"-nonsense"}, {"http"}, {"-short", "http"}} {
		require.Error(t, run(t.Context(), args, io.Discard, io.Discard), args)
	}
}
