package httpmw_test

import (
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"strings"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/breaker"
	"github.com/holdfast-go/holdfast/call"
	"github.com/holdfast-go/holdfast/httpmw"
	"github.com/holdfast-go/holdfast/outlier"
	"github.com/holdfast-go/holdfast/timeout"
)

// answering is a server that says its name, with a status.
func answering(name string, code int) *httptest.Server {
	return httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.WriteHeader(code)
		fmt.Fprint(w, name, " says ", r.URL.Path)
	}))
}

func ExampleFailover() {
	first, second := answering("eu", http.StatusServiceUnavailable), answering("us", http.StatusOK)
	defer first.Close()
	defer second.Close()
	euURL, usURL, usToken := first.URL, second.URL, "secret"

	kit, err := holdfast.New(holdfast.Config{Name: "items"})
	if err != nil {
		log.Fatal(err)
	}
	transport, err := httpmw.Failover(nil, kit, []httpmw.Upstream{
		{Name: "eu", URL: euURL},
		{Name: "us", URL: usURL + "/v2", Prepare: func(req *http.Request) error {
			req.Header.Set("Authorization", "Bearer "+usToken)
			return nil
		}},
	})
	if err != nil {
		log.Fatal(err)
	}
	client := &http.Client{Transport: transport}

	resp, err := client.Get(euURL + "/items/7")
	if err != nil {
		log.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(httpmw.AnsweredBy(resp), "answered:", string(body))
	// Output: us answered: us says /v2/items/7
}

func ExampleFailover_models() {
	silent := make(chan struct{})
	a := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		<-silent // until the end of the example
	}))
	b := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		fmt.Fprint(w, "data: Hello\n\n")
	}))
	defer func() { close(silent); a.Close(); b.Close() }()
	aURL, bURL := a.URL, b.URL

	kit, err := holdfast.New(holdfast.Config{
		Default: holdfast.Policy{
			Breaker: &breaker.Config{Scope: breaker.TwoLevel, Consecutive: 1},
			Timeout: &timeout.Limits{Total: 10 * time.Second, FirstMessage: 200 * time.Millisecond},
		},
		Methods: map[string]holdfast.Policy{"POST /chat": {Safety: call.Idempotent}},
	})
	if err != nil {
		log.Fatal(err)
	}
	transport, err := httpmw.Failover(nil, kit, []httpmw.Upstream{
		{Name: "A", Resource: "large", URL: aURL},
		{Name: "A", Resource: "small", URL: aURL},
		{Name: "B", Resource: "large", URL: bURL},
	}, httpmw.WithFront("http://llm"), httpmw.WithFirstMessage(httpmw.FirstEvent))
	if err != nil {
		log.Fatal(err)
	}
	client := &http.Client{Transport: transport}
	resp, err := client.Post("http://llm/chat", "application/json", strings.NewReader(`{"stream":true}`))
	if err != nil {
		log.Fatal(err)
	}
	defer resp.Body.Close()
	fmt.Println(httpmw.AnsweredBy(resp))
	for name, b := range kit.Breakers() {
		if name == "A" {
			fmt.Println(name, "is", b.State())
		}
	}
	// Output:
	// B|large
	// A is open
}

func ExampleFailover_instances() {
	var servers []string
	for _, code := range []int{200, 200, 503, 200} {
		server := answering("instance", code)
		defer server.Close()
		servers = append(servers, server.URL)
	}

	kit, err := holdfast.New(holdfast.Config{})
	if err != nil {
		log.Fatal(err)
	}
	transport, err := httpmw.Failover(nil, kit, []httpmw.Upstream{{
		Name:      "catalog",
		Instances: servers,
		Outlier:   outlier.Config{MinCalls: 5, Time: 30 * time.Second},
	}}, httpmw.WithFront("http://catalog"))
	if err != nil {
		log.Fatal(err)
	}
	client := &http.Client{Transport: transport}
	failed := 0
	for range 400 {
		resp, err := client.Post("http://catalog/", "text/plain", nil)
		if err != nil {
			log.Fatal(err)
		}
		if resp.StatusCode != http.StatusOK {
			failed++
		}
		resp.Body.Close()
	}
	fmt.Println(failed, "of 400 failed")
	// Output: 5 of 400 failed
}
