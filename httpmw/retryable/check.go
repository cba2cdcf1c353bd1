package retryable

import (
	"context"
	"net/http"
	"net/url"

	"github.com/hashicorp/go-retryablehttp"

	"github.com/holdfast-go/holdfast/call"
	"github.com/holdfast-go/holdfast/httpmw"
)

// never is a CheckRetry for a client whose calls are repeated further in.
func never(context.Context, *http.Response, error) (bool, error) { return false, nil }

// WithCheckRetry lets a CheckRetry function of go-retryablehttp, usually the
// client's own, have its say on each attempt:
//
//	retryable.Install(client, kit, retryable.WithCheckRetry(client.CheckRetry))
//
// It knows the API and the kit knows the dependency, so that each decides what it
// knows better:
//
//   - If the function says no, the attempt is not repeated.
//   - If it says yes to an answer that the kit takes for good or for the caller's
//     fault, such as 409 or 412, the attempt is taken for a throttled one, which
//     is repeated and, unless it is a probe, says nothing against the dependency.
//   - Its yes allows nothing else: attempts, budget, breaker, time and the request's
//     safety still bound the call. Nor does its yes outvote a no of the kit.
//
// The function is given the attempt's response and its context, or the attempt's
// error as a *url.Error without address and the background context; the kit looks
// at the caller's context itself. It must leave the body alone. The error that it
// returns is not used: a call's error is the wire's or the kit's. Nil is
// [retryablehttp.DefaultRetryPolicy].
//
// The option is an [httpmw.WithClassifier] and works for an [httpmw.Transport] too.
// One such option after it takes its place.
func WithCheckRetry(check retryablehttp.CheckRetry) httpmw.Option {
	if check == nil {
		check = retryablehttp.DefaultRetryPolicy
	}
	return httpmw.WithClassifier(func(resp *http.Response, err error, res call.Result) call.Result {
		return amend(check, resp, err, res)
	})
}

func amend(check retryablehttp.CheckRetry, resp *http.Response, err error, res call.Result) call.Result {
	switch again := ask(check, resp, err, res); {
	case !again:
		res.NoRetry = true
	case res.Class == call.OK, res.Class == call.ClientFault:
		res.Class = call.Throttled
	}
	return res
}

// ask calls the function in the form in which go-retryablehttp does, and returns what it
// says of a repeat.
func ask(check retryablehttp.CheckRetry, resp *http.Response, err error, res call.Result) (again bool) {
	if err == nil {
		ctx := context.Background()
		if resp.Request != nil {
			ctx = resp.Request.Context()
		}
		again, _ = check(ctx, resp, nil)
		return again
	}
	if res.Err != nil {
		err = res.Err // says who ended the attempt, where the wire's says "canceled"
	}
	again, _ = check(context.Background(), nil, &url.Error{Op: "attempt", Err: err})
	return again
}
