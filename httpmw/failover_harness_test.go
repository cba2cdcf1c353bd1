package httpmw_test

import (
	"context"
	"io"
	"maps"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/breaker"
	"github.com/holdfast-go/holdfast/httpmw"
	"github.com/holdfast-go/holdfast/internal/memnet"
	"github.com/holdfast-go/holdfast/outlier"
	"github.com/holdfast-go/holdfast/retry"
)

// channels are scripted servers, each with a host of its own, and one transport that
// reaches all.
type channels struct {
	kit       *holdfast.Kit
	transport *httpmw.Transport
	client    *http.Client
	base      *http.Transport
	scripts   map[string]*script
	servers   map[string]*memnet.Server
}

// host is the base URL of the server with a name.
func host(name string) string { return "http://" + name + ".test" }

// network starts the servers.
func network(t memnet.TB, proto memnet.Proto, scripts map[string]*script) *channels {
	c := &channels{scripts: scripts, servers: map[string]*memnet.Server{}}
	wires := memnet.Net{}
	for name, s := range scripts {
		server := memnet.Start(t, proto, s)
		wires[name+".test:80"] = server.Wire
		c.servers[name] = server
		c.base = server.Transport
	}
	c.base.DialContext = wires.DialContext
	return c
}

// over puts a failover over the network.
func (c *channels) over(t require.TestingT, config holdfast.Config, upstreams []httpmw.Upstream, opts ...httpmw.Option) *channels {
	k, err := holdfast.New(config)
	require.NoError(t, err)
	transport, err := httpmw.Failover(c.base, k, upstreams, opts...)
	require.NoError(t, err)
	c.kit, c.transport, c.client = k, transport, &http.Client{Transport: transport}
	return c
}

// simple is a failover over all the hosts named, in that order.
func simple(t *testing.T, proto memnet.Proto, p holdfast.Policy, scripts map[string]*script, names ...string) *channels {
	t.Helper()
	var ups []httpmw.Upstream
	for _, name := range names {
		ups = append(ups, httpmw.Upstream{URL: host(name), Name: name})
	}
	return network(t, proto, scripts).over(t, holdfast.Config{Default: p}, ups)
}

func (c *channels) hits() map[string]int {
	n := map[string]int{}
	for name, s := range c.scripts {
		if hits := len(s.hits()); hits > 0 {
			n[name] = hits
		}
	}
	return n
}

// do makes a request of the front, and reads the answer whole.
func (c *channels) do(ctx context.Context, method, url, body string) (resp *http.Response, text string, err error) {
	var r io.Reader
	if body != "" {
		r = strings.NewReader(body)
	}
	req, err := http.NewRequestWithContext(ctx, method, url, r)
	if err != nil {
		return nil, "", err
	}
	return c.send(req)
}

func (c *channels) send(req *http.Request) (resp *http.Response, text string, err error) {
	if resp, err = c.client.Do(req); err != nil {
		return nil, "", err
	}
	defer resp.Body.Close()
	all, err := io.ReadAll(resp.Body)
	return resp, string(all), err
}

func (c *channels) get(t *testing.T) (resp *http.Response, text string, err error) {
	return c.do(t.Context(), http.MethodGet, host("a")+"/x", "")
}

func (c *channels) breaker(t require.TestingT, name string) *breaker.Breaker {
	b := maps.Collect(c.kit.Breakers())[name]
	require.NotNil(t, b, "no breaker %q", name)
	return b
}

// brittle is a policy without retries whose breakers open at one failure.
func brittle() holdfast.Policy {
	p := quick()
	p.Retry = retry.Off()
	p.Breaker = &breaker.Config{Consecutive: 1, Cooldown: 10 * time.Second, Jitter: breaker.NoJitter, ProbeSuccesses: 1}
	return p
}

// overBoth runs a test in a bubble over HTTP/1.1 and HTTP/2.
func overBoth(t *testing.T, test func(*testing.T, memnet.Proto)) {
	for _, proto := range []memnet.Proto{memnet.HTTP1, memnet.H2C} {
		t.Run(string(proto), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { test(t, proto) })
		})
	}
}

// event sends events, one each pause, and then holds the stream until it is told to
// end.
func events(pause time.Duration, texts ...string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		w.WriteHeader(http.StatusOK)
		out := http.NewResponseController(w)
		_ = out.Flush()
		for _, text := range texts {
			select {
			case <-time.After(pause):
			case <-r.Context().Done():
				return
			}
			if text == "cut" {
				panic(http.ErrAbortHandler)
			}
			_, _ = io.WriteString(w, "data: "+text+"\n\n")
			_ = out.Flush()
		}
	}
}

func outlierMinCalls(n int) outlier.Config { return outlier.Config{MinCalls: n} }
