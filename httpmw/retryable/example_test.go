package retryable_test

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"time"

	"github.com/hashicorp/go-retryablehttp"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/breaker"
	"github.com/holdfast-go/holdfast/httpmw/retryable"
	"github.com/holdfast-go/holdfast/retry"
)

// sdk is a vendor's API client that lets its user reach the HTTP client inside.
type sdk struct{ HTTP *retryablehttp.Client }

func ExampleInstall() {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusServiceUnavailable)
		fmt.Fprint(w, "down for maintenance")
	}))
	defer server.Close()
	api := sdk{retryablehttp.NewClient()}
	api.HTTP.Logger = nil

	kit, err := holdfast.New(holdfast.Config{Default: holdfast.Policy{
		Retry:   &retry.Policy{MaxAttempts: 3, Backoff: retry.Backoff{Base: time.Millisecond}},
		Breaker: &breaker.Config{Consecutive: 3},
	}})
	if err != nil {
		panic(err)
	}
	if err := retryable.Install(api.HTTP, kit, retryable.WithCheckRetry(api.HTTP.CheckRetry)); err != nil {
		panic(err)
	}

	resp, err := api.HTTP.Get(server.URL)
	if err != nil {
		panic(err)
	}
	defer resp.Body.Close()
	body, _ := io.ReadAll(resp.Body)
	fmt.Println(resp.StatusCode, string(body))

	_, err = api.HTTP.Get(server.URL)
	fmt.Println("refused by the breaker:", errors.Is(err, breaker.ErrOpen))
	// Output:
	// 503 down for maintenance
	// refused by the breaker: true
}
