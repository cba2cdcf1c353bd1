package holdfast_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/call"
	"github.com/holdfast-go/holdfast/fallback"
	"github.com/holdfast-go/holdfast/fallback/memory"
	"github.com/holdfast-go/holdfast/httpmw"
	"github.com/holdfast-go/holdfast/retry"
)

// docs/fallback.md takes its code from here, word for word.

// switched is a server that answers until it is switched off.
func switched() (server *httptest.Server, off func()) {
	var down atomic.Bool
	server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if down.Load() {
			http.Error(w, "down", http.StatusServiceUnavailable)
			return
		}
		fmt.Fprint(w, "lamp, 49.90")
	}))
	return server, func() { down.Store(true) }
}

func show(client *http.Client, method, url string) {
	req, err := http.NewRequest(method, url, nil)
	if err != nil {
		log.Fatal(err)
	}
	resp, err := client.Do(req)
	if err != nil {
		fmt.Println(method, err)
		return
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Printf("%s %d %q %q\n", method, resp.StatusCode, body, resp.Header.Get("Cache-Status"))
}

func Example_stale() {
	server, off := switched()
	defer server.Close()

	store, err := memory.New(64 << 20) // bytes
	if err != nil {
		log.Fatal(err)
	}
	kit, err := holdfast.New(holdfast.Config{
		Methods: map[string]holdfast.Policy{
			"GET /items/{id}": {Fallback: &fallback.Policy{Stale: &fallback.Stale{
				Store:    store,
				Identity: fallback.SharedByAll, // an item looks the same to everybody
				Fresh:    10 * time.Second,
				MaxStale: 10 * time.Minute,
			}}},
		},
		Default: holdfast.Policy{Retry: retry.Off()}, // for a short example; leave it out
	})
	if err != nil {
		log.Fatal(err)
	}
	client := &http.Client{Transport: httpmw.NewTransport(nil, kit)}

	show(client, "GET", server.URL+"/items/7")
	off()
	show(client, "GET", server.URL+"/items/7")
	show(client, "GET", server.URL+"/items/8")
	show(client, "PUT", server.URL+"/items/7")
	// Output:
	// GET 200 "lamp, 49.90" ""
	// GET 200 "lamp, 49.90" "holdfast; hit; ttl=10; detail=unavailable"
	// GET 503 "down\n" ""
	// PUT 503 "down\n" ""
}

type userKey struct{}

func Example_staleIdentity() {
	store, err := memory.New(64 << 20)
	if err != nil {
		log.Fatal(err)
	}
	ownAnswers := &fallback.Stale{
		Store: store,
		Identity: func(ctx context.Context, r fallback.Request) string {
			user, _ := ctx.Value(userKey{}).(string) // as the application knows him
			return user                              // "": nobody knows, so nothing is kept and nothing given
		},
	}
	kit, err := holdfast.New(holdfast.Config{
		Methods: map[string]holdfast.Policy{
			"GET /me/": {Fallback: &fallback.Policy{Stale: ownAnswers}},
		},
	})
	if err != nil {
		log.Fatal(err)
	}
	_ = httpmw.NewTransport(nil, kit)
	e, err := kit.Explain("GET /me/orders")
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(e.Fallbacks[0])
	// Output: Fallback.Stale: an earlier answer, kept for each identity, younger than 5m0s
}

func Example_staticFallback() {
	kit, err := holdfast.New(holdfast.Config{
		Methods: map[string]holdfast.Policy{
			"recommendations": {
				Safety:   call.ReadOnly,
				Fallback: &fallback.Policy{Answer: fallback.Static([]string{})}, // better none than an error page
			},
		},
		Default: holdfast.Policy{Retry: retry.Off()},
	})
	if err != nil {
		log.Fatal(err)
	}
	list, err := holdfast.Do(context.Background(), kit, call.Info{Target: "recommender", Method: "recommendations"},
		func(context.Context) ([]string, error) { return nil, io.ErrUnexpectedEOF })
	fmt.Println(len(list), err)
	// Output: 0 <nil>
}

func Example_computedFallback() {
	server, off := switched()
	defer server.Close()
	off()
	kit, err := holdfast.New(holdfast.Config{
		Methods: map[string]holdfast.Policy{
			"GET /stock/{id}": {Fallback: &fallback.Policy{
				Answer: func(ctx context.Context, f fallback.Failure) (any, error) {
					if f.Class == call.Throttled {
						return nil, nil // no answer: the caller is to see the 429
					}
					return httpmw.StaticAnswer(200, nil, []byte(`{"stock":"unknown"}`))(ctx, f)
				},
			}},
		},
		Default: holdfast.Policy{Retry: retry.Off()},
		Hooks: holdfast.Hooks{Fallback: func(_ context.Context, f holdfast.Fallback) {
			fmt.Println(f.Info.Method, "answered by", f.Kind, "after", f.After.Class)
		}},
	})
	if err != nil {
		log.Fatal(err)
	}
	client := &http.Client{Transport: httpmw.NewTransport(nil, kit)}
	show(client, "GET", server.URL+"/stock/7")
	// Output:
	// GET /stock/{id} answered by computed after unavailable
	// GET 200 "{\"stock\":\"unknown\"}" "holdfast; fwd=miss; detail=computed-for-unavailable"
}

func Example_writeError() {
	kit, err := holdfast.New(holdfast.Config{})
	if err != nil {
		log.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Millisecond)
	defer cancel()
	_, err = holdfast.Do(ctx, kit, call.Info{Target: "orders", Method: "insert"},
		func(ctx context.Context) (int, error) { <-ctx.Done(); return 0, ctx.Err() })
	if write, ok := errors.AsType[*fallback.WriteError](err); ok && write.Sent {
		fmt.Println("it may have arrived; send it again with the same key")
	}
	fmt.Println(err)
	// Output:
	// it may have arrived; send it again with the same key
	// context deadline exceeded; the outcome is unknown: the call may have taken effect; nothing was stored or pretended
}
