package main

import (
	"context"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// brief goes round several times in a few seconds.
var brief = plan{20, 10 * time.Millisecond, 200 * time.Millisecond, 700 * time.Millisecond, 700 * time.Millisecond}

// operating is the program with -page, while it runs.
type operating struct {
	*testing.T
	url   string
	stop  context.CancelFunc
	ended <-chan error
}

func startOperating(t *testing.T, address string) *operating {
	t.Helper()
	ctx, stop := context.WithCancel(t.Context())
	told, progress := io.Pipe()
	ended := make(chan error, 1)
	go func() {
		err := operate(ctx, address, brief, progress)
		progress.CloseWithError(io.EOF)
		ended <- err
	}()
	text := make([]byte, 4096)
	n, err := told.Read(text)
	require.NoError(t, err)
	go func() { _, _ = io.Copy(io.Discard, told) }()
	url := regexp.MustCompile(`http://\S+/`).FindString(string(text[:n]))
	require.NotEmpty(t, url, "it says where the page is: %s", text[:n])
	o := &operating{t, url, stop, ended}
	t.Cleanup(stop)
	return o
}

// end interrupts it.
func (o *operating) end() {
	o.Helper()
	o.stop()
	select {
	case err := <-o.ended:
		require.NoError(o, err)
	case <-time.After(30 * time.Second):
		require.Fail(o, "it does not end")
	}
}

// shown is what the page says of a kit's only breaker.
type shown struct {
	Kit, Name, State, Note string
	Opens                  int
}

func (o *operating) breakers() map[string]shown {
	o.Helper()
	req, err := http.NewRequestWithContext(o.Context(), http.MethodGet, o.url, nil)
	require.NoError(o, err)
	req.Header.Set("Accept", "application/json")
	resp, err := http.DefaultClient.Do(req)
	require.NoError(o, err)
	defer resp.Body.Close()
	var page struct{ Breakers []shown }
	require.NoError(o, json.NewDecoder(resp.Body).Decode(&page))
	found := map[string]shown{}
	for _, b := range page.Breakers {
		found[b.Kit] = b
	}
	return found
}

// act asks the page to do something to a breaker, by that name of the host.
func (o *operating) act(host, kit string, b shown, action string) int {
	o.Helper()
	form := url.Values{"kit": {kit}, "breaker": {b.Name}, "action": {action}, "reason": {"a try"}}
	req, err := http.NewRequestWithContext(o.Context(), http.MethodPost, o.url, strings.NewReader(form.Encode()))
	require.NoError(o, err)
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	if host != "" {
		req.Host = host
	}
	resp, err := (&http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}).Do(req)
	require.NoError(o, err)
	require.NoError(o, resp.Body.Close())
	return resp.StatusCode
}

func (o *operating) eventually(what string, is func() bool) {
	o.Helper()
	require.Eventually(o, is, 60*time.Second, 20*time.Millisecond, what)
}

// The page shows both wires through one outage after another, lets who is at this
// machine act, and survives what he does.
func TestThePageIsServedThroughOutages(t *testing.T) {
	o := startOperating(t, "127.0.0.1:0")
	resp, err := http.Get(o.url)
	require.NoError(t, err)
	html, err := io.ReadAll(resp.Body)
	require.NoError(t, err)
	require.NoError(t, resp.Body.Close())
	require.Contains(t, string(html), "shop-http")
	require.Contains(t, string(html), "shop-grpc")

	through := func(opens int) func() bool {
		return func() bool {
			all := o.breakers()
			return all["shop-http"].Opens >= opens && all["shop-grpc"].Opens >= opens
		}
	}
	o.eventually("both circuits open", through(1))
	web := o.breakers()["shop-http"]
	require.Equal(t, http.StatusForbidden, o.act("evil.example", "0", web, "force_open"), "a name that leads here")
	require.Equal(t, http.StatusSeeOther, o.act("", "0", web, "force_open"))
	web = o.breakers()["shop-http"]
	require.Equal(t, "forced_open", web.State)
	require.Contains(t, web.Note, "a try")

	before := o.breakers()["shop-grpc"].Opens
	o.eventually("the other wire goes on, though a course has begun with a circuit that is forced open", func() bool {
		return o.breakers()["shop-grpc"].Opens >= before+6
	})
	require.Equal(t, "forced_open", o.breakers()["shop-http"].State)
	require.Equal(t, http.StatusSeeOther, o.act("", "0", web, "release"))
	o.eventually("and so does this one", func() bool { return o.breakers()["shop-http"].Opens > web.Opens })
	o.end()
	_, err = net.DialTimeout("tcp", strings.TrimSuffix(strings.TrimPrefix(o.url, "http://"), "/"), time.Second)
	require.Error(t, err, "nobody listens any more")
}

// Where others may reach the page they may only look.
func TestThePageIsReadOnlyForOthers(t *testing.T) {
	o := startOperating(t, "0.0.0.0:0")
	_, port, err := net.SplitHostPort(strings.TrimSuffix(strings.TrimPrefix(o.url, "http://"), "/"))
	require.NoError(t, err)
	o.url = "http://127.0.0.1:" + port + "/"
	require.Equal(t, http.StatusMethodNotAllowed, o.act("", "0", shown{Name: "any"}, "force_open"))
	o.end()
}

func TestAPageThatCannotBeServedIsAnError(t *testing.T) {
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer taken.Close()
	require.ErrorContains(t, operate(t.Context(), taken.Addr().String(), brief, io.Discard), "address already in use")
	require.Error(t, operate(t.Context(), "no port", brief, io.Discard))
}

func TestLoopback(t *testing.T) {
	for address, want := range map[string]bool{
		"127.0.0.1:80": true, "127.9.9.9:80": true, "[::1]:80": true, "localhost:80": true,
		"0.0.0.0:80": false, "[::]:80": false, "192.0.2.1:80": false, "localhost.evil.example:80": false, "evil.example:80": false,
		"127.0.0.1": false, "": false,
	} {
		require.Equal(t, want, loopback(address), address)
	}
}
