package main

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"time"

	"github.com/cenkalti/backoff/v5"
	"github.com/failsafe-go/failsafe-go/failsafehttp"
	"github.com/hashicorp/go-retryablehttp"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/breaker"
	"github.com/holdfast-go/holdfast/bulkhead"
	"github.com/holdfast-go/holdfast/httpmw"
	"github.com/holdfast-go/holdfast/retry"
	"github.com/holdfast-go/holdfast/timeout"
)

// All clients make up to three attempts with a millisecond or so between them,
// and know of no request what it does but its method.

// doer sends a request, repeats included.
type doer func(*http.Request) (*http.Response, error)

// client makes a doer over a transport.
type client struct {
	name string
	over func(http.RoundTripper) doer
}

var clients = []client{
	{"holdfast", func(base http.RoundTripper) doer { return send(httpmw.NewTransport(base, repeatingKit())) }},
	// https://failsafe-go.dev/http/
	{"failsafe-go", func(base http.RoundTripper) doer {
		return send(failsafehttp.NewRoundTripper(base, failsafehttp.NewRetryPolicyBuilder().ReturnLastFailure().Build()))
	}},
	// https://pkg.go.dev/github.com/hashicorp/go-retryablehttp#Client; the
	// handler has it return the last response rather than an error.
	{"retryablehttp", func(base http.RoundTripper) doer { return send(retryable(base).StandardClient().Transport) }},
	{"cenkalti, by hand", byHand},
}

// repeatingKit has retries only, as most of the others.
func repeatingKit() *holdfast.Kit {
	p := holdfast.Policy{
		Retry: &retry.Policy{
			MaxAttempts: 3, Budget: retry.NoBudget(),
			Backoff: retry.Backoff{Base: time.Millisecond, Cap: time.Millisecond},
		},
		Breaker: breaker.Off(), Timeout: timeout.Off(), Bulkhead: bulkhead.Off(),
	}
	kit, err := holdfast.New(holdfast.Config{Default: p})
	if err != nil {
		panic(err)
	}
	return kit
}

func retryable(base http.RoundTripper) *retryablehttp.Client {
	c := retryablehttp.NewClient()
	c.Logger, c.RetryMax, c.RetryWaitMin, c.RetryWaitMax = nil, 2, time.Millisecond, time.Millisecond
	c.ErrorHandler = retryablehttp.PassthroughErrorHandler
	c.HTTPClient.Transport = base
	return c
}

func send(rt http.RoundTripper) doer { return (&http.Client{Transport: rt}).Do }

// byHand is what https://pkg.go.dev/github.com/cenkalti/backoff/v5#example-Retry
// shows, with a GetBody for the repeats.
func byHand(base http.RoundTripper) doer {
	c := &http.Client{Transport: base}
	return func(req *http.Request) (*http.Response, error) {
		return backoff.Retry(req.Context(), func() (*http.Response, error) {
			attempt := req.Clone(req.Context())
			if req.GetBody != nil {
				attempt.Body, _ = req.GetBody()
			}
			resp, err := c.Do(attempt)
			if err != nil || resp.StatusCode < 500 && resp.StatusCode != http.StatusTooManyRequests {
				return resp, err
			}
			defer resp.Body.Close()
			status := fmt.Errorf("server answered %s", resp.Status)
			if seconds, err := time.ParseDuration(resp.Header.Get("Retry-After") + "s"); err == nil {
				return nil, backoff.RetryAfter(int(seconds / time.Second))
			}
			return nil, status
		}, backoff.WithMaxTries(3), backoff.WithBackOff(backoff.NewConstantBackOff(time.Millisecond)))
	}
}

func httpRows() []row {
	each := func(name, asks string, program func(client) (string, error)) row {
		r := row{name: name, asks: asks}
		for _, c := range clients {
			r.cells = append(r.cells, cell{c.name, func() (string, error) { return program(c) }})
		}
		return r
	}
	return []row{
		retryOverOpen(),
		each("POST repeated", "a POST does its work at the server and is answered with 503", postRepeated),
		each("body leak", "twenty GETs, each answered twice with 503 and 10 KiB and then with 200", bodyLeak),
		each("Retry-After of a day", "a 503 asks for a day's pause; the caller waits a second at most", retryAfterADay),
	}
}

// counting is a server that counts its requests and connections.
type counting struct {
	*httptest.Server
	requests, connections atomic.Int64
}

func serve(answer func(n int64, w http.ResponseWriter, r *http.Request)) *counting {
	s := new(counting)
	s.Server = httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		answer(s.requests.Add(1), w, r)
	}))
	s.Config.ConnState = func(_ net.Conn, state http.ConnState) {
		if state == http.StateNew {
			s.connections.Add(1)
		}
	}
	s.Start()
	return s
}

// told says what came back.
func told(resp *http.Response, err error) string {
	if err != nil {
		return "an error: " + err.Error()
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		return fmt.Sprintf("%s with a body that breaks off: %v", resp.Status, err)
	}
	return fmt.Sprintf("%s with %d bytes", resp.Status, len(body))
}

func postRepeated(c client) (string, error) {
	s := serve(func(_ int64, w http.ResponseWriter, _ *http.Request) {
		http.Error(w, "done, but the answer was lost", http.StatusServiceUnavailable)
	})
	req, err := http.NewRequest(http.MethodPost, s.URL, strings.NewReader("an order"))
	if err != nil {
		return "", err
	}
	answer := told(c.over(&http.Transport{})(req))
	return fmt.Sprintf("%s; the caller got %s", count(s.requests.Load(), "request"), strings.ReplaceAll(answer, s.URL, "URL")), nil
}

func count(n int64, of string) string {
	switch {
	case n == 1:
		return "1 " + of
	case strings.HasSuffix(of, "y"):
		return fmt.Sprintf("%d %sies", n, strings.TrimSuffix(of, "y"))
	}
	return fmt.Sprintf("%d %ss", n, of)
}

func bodyLeak(c client) (string, error) {
	page := strings.Repeat("x", 10<<10)
	s := serve(func(n int64, w http.ResponseWriter, _ *http.Request) {
		if n%3 != 0 {
			w.WriteHeader(http.StatusServiceUnavailable)
		}
		_, _ = io.WriteString(w, page)
	})
	var open atomic.Int64
	wire := &http.Transport{}
	do := c.over(watched(wire, &open))
	well := 0
	for range 20 {
		req, err := http.NewRequest(http.MethodGet, s.URL, nil)
		if err != nil {
			return "", err
		}
		if resp, err := do(req); err == nil {
			_, _ = io.Copy(io.Discard, resp.Body)
			resp.Body.Close()
			well++
		}
	}
	return fmt.Sprintf("%d of 20 succeeded, %s, %s, %s left open", well, count(s.requests.Load(), "request"),
		count(s.connections.Load(), "connection"), count(open.Load(), "body")), nil
}

// watched counts the bodies of responses that nobody has closed.
func watched(base http.RoundTripper, open *atomic.Int64) http.RoundTripper {
	return roundTripper(func(req *http.Request) (*http.Response, error) {
		resp, err := base.RoundTrip(req)
		if err == nil {
			open.Add(1)
			resp.Body = &watchedBody{ReadCloser: resp.Body, open: open}
		}
		return resp, err
	})
}

type watchedBody struct {
	io.ReadCloser
	open   *atomic.Int64
	closed atomic.Bool
}

func (b *watchedBody) Close() error {
	if !b.closed.Swap(true) {
		b.open.Add(-1)
	}
	return b.ReadCloser.Close()
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(req *http.Request) (*http.Response, error) { return f(req) }

func retryAfterADay(c client) (string, error) {
	s := serve(func(_ int64, w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Retry-After", "86400")
		http.Error(w, "tomorrow", http.StatusServiceUnavailable)
	})
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, s.URL, nil)
	if err != nil {
		return "", err
	}
	begin := time.Now()
	answer := told(c.over(&http.Transport{})(req))
	return fmt.Sprintf("%s; after %v the caller got %s", count(s.requests.Load(), "request"), about(time.Since(begin)),
		strings.ReplaceAll(answer, s.URL, "URL")), nil
}

// about rounds what a busy machine would make jump.
func about(d time.Duration) time.Duration {
	if d < 50*time.Millisecond {
		return 0
	}
	return d.Round(100 * time.Millisecond)
}
