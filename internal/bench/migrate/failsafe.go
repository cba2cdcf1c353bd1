package migrate

import (
	"net/http"
	"time"

	"github.com/failsafe-go/failsafe-go/circuitbreaker"
	"github.com/failsafe-go/failsafe-go/failsafehttp"
	failsafetimeout "github.com/failsafe-go/failsafe-go/timeout"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/breaker"
	"github.com/holdfast-go/holdfast/httpmw"
	"github.com/holdfast-go/holdfast/retry"
	"github.com/holdfast-go/holdfast/timeout"
)

func failsafeBefore() *http.Client {
	again := failsafehttp.NewRetryPolicyBuilder().
		WithMaxAttempts(3).
		WithBackoff(50*time.Millisecond, 5*time.Second).
		Build()
	circuit := circuitbreaker.NewBuilder[*http.Response]().
		HandleIf(func(resp *http.Response, err error) bool { return err != nil || resp.StatusCode >= 500 }).
		WithFailureRateThreshold(0.5, 10, 20*time.Second).
		WithDelay(5 * time.Second).
		WithSuccessThreshold(3).
		Build()
	limit := failsafetimeout.New[*http.Response](2 * time.Second)
	// The order is that of the arguments, the outermost first.
	return &http.Client{Transport: failsafehttp.NewRoundTripper(nil, again, circuit, limit)}
}

func failsafeAfter() (*http.Client, error) {
	kit, err := holdfast.New(holdfast.Config{Default: holdfast.Policy{
		Retry: &retry.Policy{
			MaxAttempts: 3,
			Backoff:     retry.Backoff{Base: 50 * time.Millisecond, Cap: 5 * time.Second},
		},
		Breaker: &breaker.Config{
			Window: breaker.Window{Span: 20 * time.Second}, MinCalls: 10, FailureRate: 0.5,
			Cooldown: 5 * time.Second, ProbeSuccesses: 3,
		},
		Timeout: &timeout.Limits{Total: 10 * time.Second, Attempt: 2 * time.Second},
	}})
	if err != nil {
		return nil, err
	}
	return &http.Client{Transport: httpmw.NewTransport(nil, kit)}, nil
}
