package main

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/cenkalti/backoff/v5"
	"github.com/failsafe-go/failsafe-go"
	"github.com/failsafe-go/failsafe-go/circuitbreaker"
	"github.com/failsafe-go/failsafe-go/failsafehttp"
	"github.com/sony/gobreaker/v2"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/breaker"
	"github.com/holdfast-go/holdfast/httpmw"
	"github.com/holdfast-go/holdfast/retry"
)

// retryOverOpen repeats a call over a circuit that is open for an hour. The
// waits are long enough to be seen.
func retryOverOpen() row {
	const wait, long = 300 * time.Millisecond, time.Hour
	get := func(do doer, url string) (string, error) {
		req, err := http.NewRequest(http.MethodGet, url, nil)
		if err != nil {
			return "", err
		}
		begin := time.Now()
		answer := told(do(req))
		return fmt.Sprintf("after %v the caller got %s", about(time.Since(begin)), strings.ReplaceAll(answer, url, "URL")), nil
	}
	const url = "http://127.0.0.1:1/" // nobody listens, and nobody is asked
	gobreakerOver := func(asked *int) http.RoundTripper {
		b := gobreaker.NewCircuitBreaker[*http.Response](gobreaker.Settings{Timeout: long, ReadyToTrip: func(gobreaker.Counts) bool { return true }})
		_, _ = b.Execute(func() (*http.Response, error) { return nil, errDown })
		return roundTripper(func(req *http.Request) (*http.Response, error) {
			*asked++
			return b.Execute(func() (*http.Response, error) { return http.DefaultTransport.RoundTrip(req) })
		})
	}
	asked := func(n int, did string, err error) (string, error) {
		return fmt.Sprintf("the circuit was asked %s; %s", count(int64(n), "time"), did), err
	}
	return row{
		name: "retry over open circuit", asks: fmt.Sprintf("three attempts with %v between them, and the circuit is open for an hour", wait),
		cells: []cell{
			{"holdfast", func() (string, error) {
				n := 0
				c := breaker.Config{Consecutive: 1, Cooldown: long, MaxCooldown: long, Hooks: breaker.Hooks{Refused: func(*breaker.OpenError) { n++ }}}
				kit, err := holdfast.New(holdfast.Config{Default: holdfast.Policy{
					Breaker: &c, Retry: &retry.Policy{MaxAttempts: 3, Backoff: retry.Backoff{Base: wait, Jitter: retry.NoJitter}},
				}})
				if err != nil {
					return "", err
				}
				do := send(httpmw.NewTransport(nil, kit))
				_, _ = get(do, url) // opens it
				n = 0
				did, err := get(do, url)
				return asked(n, did, err)
			}},
			// AbortOnErrors is from https://failsafe-go.dev/retry/ under "Aborting Retries"
			{"failsafe-go", func() (string, error) {
				n := 0
				b := circuitbreaker.NewBuilder[*http.Response]().WithDelay(long).Build()
				b.Open()
				retries := failsafehttp.NewRetryPolicyBuilder().WithDelay(wait).WithMaxAttempts(3).AbortOnErrors(circuitbreaker.ErrOpen).
					OnFailure(func(failsafe.ExecutionEvent[*http.Response]) { n++ }).Build()
				did, err := get(send(failsafehttp.NewRoundTripper(nil, retries, b)), url)
				return asked(n, did, err)
			}},
			{"failsafe-go, as composed in its docs", func() (string, error) {
				n := 0
				b := circuitbreaker.NewBuilder[*http.Response]().WithDelay(long).Build()
				b.Open()
				retries := failsafehttp.NewRetryPolicyBuilder().WithDelay(wait).WithMaxAttempts(3).
					OnFailure(func(failsafe.ExecutionEvent[*http.Response]) { n++ }).Build()
				did, err := get(send(failsafehttp.NewRoundTripper(nil, retries, b)), url)
				return asked(n, did, err)
			}},
			{"retryablehttp over gobreaker", func() (string, error) {
				n := 0
				c := retryable(gobreakerOver(&n))
				c.RetryWaitMin, c.RetryWaitMax = wait, wait
				did, err := get(send(c.StandardClient().Transport), url)
				return asked(n, did, err)
			}},
			// https://pkg.go.dev/github.com/cenkalti/backoff/v5#Permanent
			{"cenkalti over gobreaker", func() (string, error) {
				n := 0
				over := send(gobreakerOver(&n))
				did, err := get(func(req *http.Request) (*http.Response, error) {
					return backoff.Retry(req.Context(), func() (*http.Response, error) {
						resp, err := over(req)
						if errors.Is(err, gobreaker.ErrOpenState) {
							err = backoff.Permanent(err)
						}
						return resp, err
					}, backoff.WithMaxTries(3), backoff.WithBackOff(backoff.NewConstantBackOff(wait)))
				}, url)
				return asked(n, did, err)
			}},
		},
	}
}
