package httpmw_test

import (
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"log"
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
	"github.com/holdfast-go/holdfast/timeout"
)

// link is how client and servers are joined: in a bubble and in memory, or over
// loopback sockets in real time.
type link struct {
	proto   memnet.Proto
	sockets bool
}

func (l link) String() string {
	if l.sockets {
		return string(l.proto) + ", sockets"
	}
	return string(l.proto)
}

// overBubbles runs a test in a bubble over each protocol.
func overBubbles(t *testing.T, test func(*testing.T, link)) {
	overEach(t, func(t *testing.T, proto memnet.Proto) { test(t, link{proto: proto}) })
}

// overLinks runs a test that looks at no clock over sockets too.
func overLinks(t *testing.T, test func(*testing.T, link)) {
	overBubbles(t, test)
	for _, proto := range memnet.Protos() {
		l := link{proto, true}
		t.Run(l.String(), func(t *testing.T) { test(t, l) })
	}
}

// channels are scripted servers, each with a host of its own, and one transport that
// reaches all.
type channels struct {
	link
	kit       *holdfast.Kit
	transport *httpmw.Transport
	client    *http.Client
	base      *http.Transport
	scripts   map[string]*script
	servers   map[string]*memnet.Server // in a bubble
	refused   *refusals                 // over sockets
}

// host is the base URL of the server with a name.
func (l link) host(name string) string {
	if l.proto.TLS() {
		return "https://" + name + ".test"
	}
	return "http://" + name + ".test"
}

// address is what a transport dials for that URL.
func (l link) address(name string) string {
	if l.proto.TLS() {
		return name + ".test:443"
	}
	return name + ".test:80"
}

// network starts the servers. Their one certificate is for all their names.
func network(t memnet.TB, l link, scripts map[string]*script) *channels {
	c := &channels{link: l, scripts: scripts}
	var secret, trust *tls.Config
	if l.proto.TLS() {
		var hosts []string
		for name := range scripts {
			hosts = append(hosts, name+".test")
		}
		cert, roots, err := memnet.Certificate(hosts...)
		if err != nil {
			t.Fatalf("no certificate: %v", err)
		}
		secret, trust = &tls.Config{Certificates: []tls.Certificate{cert}}, &tls.Config{RootCAs: roots}
	}
	tune := func(s *http.Server, tr *http.Transport) {
		s.ErrorLog = log.New(io.Discard, "", 0) // cut handshakes are meant
		s.TLSConfig, tr.TLSClientConfig = secret.Clone(), trust.Clone()
	}
	if l.sockets {
		c.onSockets(t, tune)
	} else {
		c.inMemory(t, tune)
	}
	return c
}

func (c *channels) inMemory(t memnet.TB, tune func(*http.Server, *http.Transport)) {
	c.servers = map[string]*memnet.Server{}
	wires := memnet.Net{}
	for name, s := range c.scripts {
		server := memnet.Start(t, c.proto, s, tune)
		wires[c.address(name)] = server.Wire
		c.servers[name] = server
		c.base = server.Transport
	}
	c.base.DialContext = wires.DialContext
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
func simple(t *testing.T, l link, p holdfast.Policy, scripts map[string]*script, names ...string) *channels {
	t.Helper()
	var ups []httpmw.Upstream
	for _, name := range names {
		ups = append(ups, httpmw.Upstream{URL: l.host(name), Name: name})
	}
	return network(t, l, scripts).over(t, holdfast.Config{Default: p}, ups)
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
	if http2 := c.proto != memnet.HTTP1; (resp.ProtoMajor == 2) != http2 {
		return nil, "", fmt.Errorf("%s over a link of %s", resp.Proto, c.proto)
	}
	all, err := io.ReadAll(resp.Body)
	return resp, string(all), err
}

func (c *channels) get(t *testing.T) (resp *http.Response, text string, err error) {
	return c.do(t.Context(), http.MethodGet, c.host("a")+"/x", "")
}

func (c *channels) breaker(t require.TestingT, name string) *breaker.Breaker {
	b := maps.Collect(c.kit.Breakers())[name]
	require.NotNil(t, b, "no breaker %q", name)
	return b
}

// refuse makes the server with a name refuse connections, or take them again.
// The connections that are idle once every call has ended are closed first.
func (c *channels) refuse(t require.TestingT, name string, refuse bool) {
	if c.sockets {
		c.refused.set(c.address(name), refuse)
		require.Eventually(t, func() bool {
			c.transport.CloseIdleConnections() // HTTP/2 knows a little late that one is idle
			return c.refused.open.Load() == 0
		}, 10*time.Second, time.Millisecond, "connections left open")
		return
	}
	synctest.Wait()
	c.transport.CloseIdleConnections()
	c.servers[name].Wire.Refuse(refuse)
}

// settled asserts what comes true by what others do, without a wait for time.
func (c *channels) settled(t *testing.T, is func() bool, text string) {
	t.Helper()
	if c.sockets {
		require.Eventually(t, is, 10*time.Second, time.Millisecond, text)
		return
	}
	synctest.Wait()
	require.True(t, is(), text)
}

// unhurried is quick with an attempt limit that no busy machine exceeds.
func unhurried() holdfast.Policy {
	p := quick()
	p.Timeout = &timeout.Limits{Attempt: 30 * time.Second}
	return p
}

// brittle is a policy without retries whose breakers open at one failure.
func brittle() holdfast.Policy {
	p := quick()
	p.Retry = retry.Off()
	p.Breaker = &breaker.Config{Consecutive: 1, Cooldown: 10 * time.Second, Jitter: breaker.NoJitter, ProbeSuccesses: 1}
	return p
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
