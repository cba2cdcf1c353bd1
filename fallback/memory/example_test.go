package memory_test

import (
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/fallback"
	"github.com/holdfast-go/holdfast/fallback/memory"
	"github.com/holdfast-go/holdfast/httpmw"
	"github.com/holdfast-go/holdfast/retry"
)

// A store of 64 MiB keeps the answers that a policy gives once more when its
// dependency is down.
func ExampleNew() {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "lamp, 49.90") }))
	store, err := memory.New(64 << 20)
	if err != nil {
		log.Fatal(err)
	}
	kit, err := holdfast.New(holdfast.Config{Default: holdfast.Policy{
		Retry: retry.Off(),
		Fallback: &fallback.Policy{Stale: &fallback.Stale{
			Store: store, Identity: fallback.SharedByAll, Fresh: time.Minute, MaxStale: time.Hour,
		}},
	}})
	if err != nil {
		log.Fatal(err)
	}
	client := &http.Client{Transport: httpmw.NewTransport(nil, kit)}
	get := func() {
		resp, err := client.Get(server.URL)
		if err != nil {
			log.Fatal(err)
		}
		defer resp.Body.Close()
		body, err := io.ReadAll(resp.Body)
		if err != nil {
			log.Fatal(err)
		}
		fmt.Printf("%s, %q\n", body, resp.Header.Get("Cache-Status"))
	}
	get()
	server.Close()
	get()
	fmt.Println(store.Len(), "answer is kept")
	// Output:
	// lamp, 49.90, ""
	// lamp, 49.90, "holdfast; hit; ttl=60; detail=unavailable"
	// 1 answer is kept
}
