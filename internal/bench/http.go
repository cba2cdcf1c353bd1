package main

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"time"

	"github.com/failsafe-go/failsafe-go/failsafehttp"
	"github.com/hashicorp/go-retryablehttp"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/httpmw"
)

// protected makes a transport of a base.
type protected func(base http.RoundTripper) http.RoundTripper

func holdfastHTTP(p holdfast.Policy) protected {
	return func(base http.RoundTripper) http.RoundTripper { return httpmw.NewTransport(base, newKit(p)) }
}

// failsafeHTTP: https://failsafe-go.dev/http/
func (s situation) failsafeHTTP(base http.RoundTripper) http.RoundTripper {
	return failsafehttp.NewRoundTripper(base, failsafeStack(failsafehttp.NewRetryPolicyBuilder(), s.limit)...)
}

// retryableHTTP: https://pkg.go.dev/github.com/hashicorp/go-retryablehttp#Client.StandardClient
// It has retries only.
func retryableHTTP(base http.RoundTripper) http.RoundTripper {
	c := retryablehttp.NewClient()
	c.Logger, c.RetryMax = nil, 2
	c.HTTPClient.Transport = base
	return c.StandardClient().Transport
}

// byHandHTTP puts the hand-made stack around a base. As such code does, it reads the
// response within the attempt.
func (s situation) byHandHTTP(base http.RoundTripper) http.RoundTripper {
	stack := newByHand(s.limit)
	return roundTripper(func(req *http.Request) (*http.Response, error) {
		var resp *http.Response
		err := stack.do(req.Context(), func(ctx context.Context) error {
			attempt := req.Clone(ctx)
			if req.GetBody != nil {
				body, err := req.GetBody()
				if err != nil {
					return err
				}
				attempt.Body = body
			}
			var err error
			if resp, err = base.RoundTrip(attempt); err != nil {
				return err
			}
			content, err := io.ReadAll(resp.Body)
			resp.Body.Close()
			resp.Body = io.NopCloser(bytes.NewReader(content))
			return err
		})
		if req.Body != nil {
			req.Body.Close()
		}
		return resp, err
	})
}

// beside is no protection at all: before each request it sends one by p over the stub.
func beside(p protected) protected {
	return func(base http.RoundTripper) http.RoundTripper {
		stub := p(stubTransport)
		return roundTripper(func(req *http.Request) (*http.Response, error) {
			if resp, err := stub.RoundTrip(req); err != nil || resp.StatusCode != http.StatusOK {
				panic("the stub has failed")
			}
			return base.RoundTrip(req)
		})
	}
}

// delayed is none either: it keeps the processor busy before each request.
func delayed(base http.RoundTripper) http.RoundTripper {
	return roundTripper(func(req *http.Request) (*http.Response, error) {
		for began := time.Now(); time.Since(began) < 500*time.Nanosecond; {
		}
		return base.RoundTrip(req)
	})
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(req *http.Request) (*http.Response, error) { return f(req) }

// stubTransport reads what it is sent and answers at once.
var stubTransport = roundTripper(func(req *http.Request) (*http.Response, error) {
	if req.Body != nil {
		if _, err := io.Copy(io.Discard, req.Body); err != nil {
			return nil, err
		}
		req.Body.Close()
	}
	return &http.Response{StatusCode: http.StatusOK, Header: http.Header{}, Body: http.NoBody, Request: req}, nil
})

// request makes the row's requests.
type request struct {
	method  string
	content string
	in      situation
}

func (q request) send(rt http.RoundTripper, url string) work {
	ctx := q.in.ctx()
	return again(func(n int) {
		for range n {
			var body io.Reader
			if q.content != "" {
				body = strings.NewReader(q.content) // net/http sets GetBody
			}
			req, err := http.NewRequestWithContext(ctx, q.method, url, body)
			if err != nil {
				panic(err)
			}
			resp, err := rt.RoundTrip(req)
			if err != nil {
				panic(err)
			}
			if _, err := io.Copy(io.Discard, resp.Body); err != nil {
				panic(err)
			}
			resp.Body.Close()
			if resp.StatusCode != http.StatusOK {
				panic(resp.Status)
			}
		}
	})
}

// overStub is a contender over the stub.
func (q request) overStub(name string, role role, p protected) contender {
	return contender{name: name, role: role, setup: func() work {
		rt := http.RoundTripper(stubTransport)
		if p != nil {
			rt = p(rt)
		}
		return q.send(rt, "http://api.example.com/items")
	}}
}

// overLoopback is a contender with a server of its own.
func (q request) overLoopback(name string, role role, p protected) contender {
	return contender{name: name, role: role, setup: func() work {
		answer := strings.Repeat("x", 1<<10)
		s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			_, _ = io.Copy(io.Discard, r.Body)
			_, _ = io.WriteString(w, answer)
		}))
		rt := http.RoundTripper(&http.Transport{})
		if p != nil {
			rt = p(rt)
		}
		return q.send(rt, s.URL)
	}}
}

func httpRows() []row {
	get, getSooner := request{http.MethodGet, "", ownLimit}, request{http.MethodGet, "", callerSooner}
	put := func(size int) request { return request{http.MethodPut, strings.Repeat("x", size), ownLimit} }
	all := func(in situation, over func(string, role, protected) contender) []contender {
		return []contender{
			over("bare", bare, nil), over("holdfast", kit, holdfastHTTP(in.policy())),
			over("failsafe-go", peer, in.failsafeHTTP), over("retryablehttp", peer, retryableHTTP), over("by hand", peer, in.byHandHTTP),
		}
	}
	stub := func(name string, q request, g goal) row {
		return row{name: name, goal: g, contenders: append(all(q.in, q.overStub), clocksAndAdds)}
	}
	loopback := func(name string, q request, g goal) row {
		return row{name: name, network: true, goal: g, contenders: all(q.in, q.overLoopback)}
	}
	return []row{
		stub("http stub, GET", get, goal{text: "bare + 350 ns, 3 allocations, 450 B", times: 1, plus: 350, pace: 77, allocs: most(3), bytes: most(450)}),
		stub("http stub, GET, caller's deadline sooner", getSooner, goal{text: "bare + 150 ns, 0 allocations", times: 1, plus: 150, pace: 77, allocs: most(0)}),
		{
			name:       "http stub, GET, caller's deadline sooner, once",
			contenders: []contender{getSooner.overStub("bare", bare, nil), getSooner.overStub("holdfast", kit, holdfastHTTP(callerSooner.once()))},
		},
		stub("http stub, PUT 1 KiB", put(1<<10), goal{}),
		stub("http stub, PUT 64 KiB", put(64<<10), goal{text: "bare + 400 ns, 500 B", times: 1, plus: 400, pace: 77, bytes: most(500)}),
		loopback("http loopback, GET", get, goal{text: "1.05 x bare, 10 allocations", times: 1.05, allocs: most(10)}),
		loopback("http loopback, GET, caller's deadline sooner", getSooner, goal{text: "1.02 x bare, 0 allocations", times: 1.02, allocs: most(0)}),
		{
			name: "http loopback, GET, and beside it one over the stub", network: true,
			contenders: []contender{
				get.overLoopback("bare", bare, nil), get.overLoopback("holdfast", kit, beside(holdfastHTTP(ownLimit.policy()))),
				get.overLoopback("a delay of 500 ns", peer, delayed),
			},
			note: "the request over loopback is bare: it shows what the kit's work costs where its code and data have left the processor's caches, " +
				"which in the stub's rows they have not; a mere delay costs no more than itself",
		},
		loopback("http loopback, PUT 1 KiB", put(1<<10), goal{}),
		loopback("http loopback, PUT 64 KiB", put(64<<10), goal{}),
	}
}
