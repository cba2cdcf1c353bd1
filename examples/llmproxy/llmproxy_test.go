package main

import (
	"encoding/json"
	"io"
	"log"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-go/holdfast/breaker"
	"github.com/holdfast-go/holdfast/internal/memnet"
)

// inMemory runs the course in virtual time.
func inMemory(t *testing.T, c *course, proto memnet.Proto) {
	quiet := func(s *http.Server, _ *http.Transport) { s.ErrorLog = log.New(io.Discard, "", 0) }
	wires := memnet.Net{}
	var channels []channel
	var base *http.Transport
	for _, p := range c.providers {
		server := memnet.Start(t, proto, p, quiet)
		host := strings.ToLower(p.name) + ".test"
		wires[host+":80"] = server.Wire
		channels = append(channels, channel{p.name, "http://" + host, p.key})
		base = server.Transport
	}
	base.DialContext = wires.DialContext
	proxy, err := newProxy(base, c.kit, channels)
	require.NoError(t, err)
	server := memnet.Start(t, memnet.HTTP1, proxy, quiet)
	c.run(t.Context(), server.Client(), server.URL)
}

// What the program promises: with A silent the first token is there within 300 ms for
// 99 of 100, A gets probes only while it is cut off, no stream is mixed, and A is used
// again once it is well.
func TestTheProxyKeepsItsPromise(t *testing.T) {
	for _, proto := range []memnet.Proto{memnet.HTTP1, memnet.H2C} {
		t.Run(string(proto), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var shown strings.Builder
				c, err := newCourse(short, &screen{out: &shown})
				require.NoError(t, err)
				inMemory(t, c, proto)
				f := c.figures()
				require.Zero(t, f.Mixed)
				require.Greater(t, f.cutOff, 40)
				require.Greater(t, f.P99, 5.0)
				require.Less(t, f.P99, 300.0)
				require.Positive(t, f.probes)
				require.Equal(t, f.probes, f.toA, "A gets probes only")
				require.Less(t, f.toA, 8)

				by, broke := map[string]int{}, map[string]int{}
				for _, done := range c.completions {
					by[done.by]++
					if done.ok {
						require.Equal(t, tokens, done.tokens)
						require.Len(t, done.from, 1)
						require.True(t, done.from[done.by[:1]], "by %s", done.by)
						continue
					}
					broke[done.by]++
				}
				require.Positive(t, by["A|large"])
				require.Positive(t, by["B|large"])
				require.Positive(t, by["C|large"])
				require.Zero(t, broke["B|large"]+broke["A|large"])
				require.Positive(t, broke["C|large"], "what broke off half way did so before the caller's eyes")
				last := c.completions[len(c.completions)-1]
				require.Equal(t, "A|large", last.by, "sticky return")
				require.Equal(t, breaker.Closed, c.channel("A").State())
				require.Contains(t, shown.String(), "breaker A: closed to open")
				require.Contains(t, shown.String(), "breaker A: half_open to closed")
				require.Regexp(t, `(?m)^ \d\.\d\d s  A+ +\d+ ms +\d+ ms$`, shown.String())
				require.Regexp(t, `(?m)^ \d\.\d\d s  B+ +\d+ ms +\d+ ms$`, shown.String())
				require.Contains(t, shown.String(), "C!")
				require.Less(t, strings.Count(shown.String(), "\n"), 70, "a screen full, of %d requests", f.Requests)
			})
		})
	}
}

func TestTheFiguresAreOneJSONObject(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, err := newCourse(short, nil)
		require.NoError(t, err)
		inMemory(t, c, memnet.HTTP1)
		var out strings.Builder
		require.NoError(t, c.figures().writeJSON(&out))
		var got map[string]any
		require.NoError(t, json.Unmarshal([]byte(out.String()), &got))
		require.Len(t, got, 5)
		require.EqualValues(t, len(c.completions), got["requests"])
		require.Len(t, got["hits"], 3)
		require.EqualValues(t, 0, got["mixed_streams"])
		require.Positive(t, got["ok"])
		require.Positive(t, got["ttft_p99_ms"])
	})
}

// A stream of two channels would be noticed.
func TestAMixedStreamIsCounted(t *testing.T) {
	c, err := newCourse(short, nil)
	require.NoError(t, err)
	c.served(completion{from: map[string]bool{"A": true, "B": true}, tokens: 2})
	require.Equal(t, 1, c.figures().Mixed)
	require.Equal(t, "B", channelOf(`{"choices":[{"delta":{"content":"B7 "}}]}`))
	require.Equal(t, "?", channelOf(`{"choices":[]}`))
}

// A letter for each request, in rows of half a second that an event ends; or a line.
func TestTheScreen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		requests := []completion{
			{by: "A|large", tokens: 10, ok: true, first: 5 * time.Millisecond, status: 200},
			{by: "C|small", tokens: 5, first: 200 * time.Millisecond, status: 200},
			{by: "B|large", tokens: 10, ok: true, first: 7 * time.Millisecond, status: 200},
			{status: 503}, {},
		}
		var rows, lines strings.Builder
		for _, s := range []*screen{{out: &rows}, {out: &lines, each: true}, nil} {
			s.begin()
			s.part("it begins")
			for i, c := range requests {
				s.request(i+1, c)
			}
			time.Sleep(rowTime)
			s.request(6, requests[0])
			s.line("breaker")
			s.request(7, requests[3])
			s.flush()
		}
		require.Equal(t, legend+`
 0.00 s  it begins
 0.50 s  Ac!B-?                                                                     7 ms  200 ms
 0.50 s  A                                                                          5 ms    5 ms
 0.50 s  breaker
 0.50 s  -
`, rows.String())
		require.Contains(t, lines.String(), "#2    C|small  first token  200 ms   5 tokens  broke off\n")
		require.Contains(t, lines.String(), "#4             first token    0 ms   0 tokens  refused\n")
		require.Equal(t, 10, strings.Count(lines.String(), "\n"))
	})
}
