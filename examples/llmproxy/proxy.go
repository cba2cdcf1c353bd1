package main

import (
	"bytes"
	"encoding/json"
	"io"
	"log"
	"net/http"
	"net/http/httputil"
	"net/url"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/breaker"
	"github.com/holdfast-go/holdfast/bulkhead"
	"github.com/holdfast-go/holdfast/call"
	"github.com/holdfast-go/holdfast/httpmw"
	"github.com/holdfast-go/holdfast/retry"
	"github.com/holdfast-go/holdfast/timeout"
)

// This file is the part to copy.

const (
	route = "POST /v1/chat/completions"
	front = "http://llm" // stands for all channels

	firstMessage = 200 * time.Millisecond
)

// policies protects the one route of the proxy. A repeated completion costs tokens
// and changes nothing, so the route is Idempotent although it is a POST.
func policies(hooks holdfast.Hooks) holdfast.Config {
	return holdfast.Config{
		Name: "llm",
		Default: holdfast.Policy{
			Retry: &retry.Policy{MaxAttempts: 2, Backoff: retry.Backoff{Base: 50 * time.Millisecond}},
			Breaker: &breaker.Config{
				Scope:       breaker.TwoLevel, // a channel, and each of its models
				Consecutive: 3,
				FailureRate: 0.5, MinCalls: 6,
				Cooldown: time.Second, MaxCooldown: 2 * time.Second,
				ProbeSuccesses: 2, ProbeTimeout: time.Second,
			},
			Timeout: &timeout.Limits{
				Total: 10 * time.Second, Attempt: 5 * time.Second,
				FirstMessage: firstMessage, // to the first token, dial included
				Idle:         time.Second,  // between two tokens
			},
			Bulkhead: &bulkhead.Config{Limit: 100},
		},
		Methods: map[string]holdfast.Policy{route: {Safety: call.Idempotent}},
		Hooks:   hooks,
	}
}

// channel is where a provider is reached, and with which key.
type channel struct{ name, url, key string }

// models are those that each channel has, the better one first.
var models = []string{"large", "small"}

// newProxy returns the handler that streams each completion from the first channel
// that has one: the better model of every channel, then the other.
func newProxy(base http.RoundTripper, kit *holdfast.Kit, channels []channel) (http.Handler, error) {
	var upstreams []httpmw.Upstream
	for _, model := range models {
		for _, c := range channels {
			upstreams = append(upstreams, httpmw.Upstream{
				Name: c.name, Resource: model, URL: c.url, Prepare: asks(model, c.key),
			})
		}
	}
	transport, err := httpmw.Failover(base, kit, upstreams,
		httpmw.WithFront(front), httpmw.WithFirstMessage(httpmw.FirstEvent))
	if err != nil {
		return nil, err
	}
	to, err := url.Parse(front)
	if err != nil {
		return nil, err
	}
	return &httputil.ReverseProxy{
		Rewrite:       func(r *httputil.ProxyRequest) { r.SetURL(to) },
		Transport:     transport,
		FlushInterval: -1,                         // each token at once
		ErrorLog:      log.New(io.Discard, "", 0), // the client sees a stream break off
		ModifyResponse: func(resp *http.Response) error {
			resp.Header.Set("X-Served-By", httpmw.AnsweredBy(resp))
			return nil
		},
		ErrorHandler: func(w http.ResponseWriter, _ *http.Request, err error) {
			http.Error(w, err.Error(), http.StatusServiceUnavailable)
		},
	}, nil
}

// asks makes a request one for a model, with the key of its channel.
func asks(model, key string) func(*http.Request) error {
	return func(req *http.Request) error {
		var body map[string]any
		err := json.NewDecoder(req.Body).Decode(&body)
		req.Body.Close()
		if err != nil {
			return err
		}
		body["model"] = model
		text, err := json.Marshal(body)
		if err != nil {
			return err
		}
		req.Body, req.ContentLength = io.NopCloser(bytes.NewReader(text)), int64(len(text))
		req.Header.Set("Authorization", "Bearer "+key)
		return nil
	}
}
