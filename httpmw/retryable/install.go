package retryable

import (
	"errors"
	"net/http"

	"github.com/hashicorp/go-retryablehttp"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/httpmw"
)

// Install makes k run the calls of client. Call it before the client's first
// request and after all other set-up of the client, and let nothing set
// HTTPClient, CheckRetry, RetryMax or ErrorHandler afterwards; the hooks and the
// Logger may still change.
//
// The client's HTTPClient is replaced by a copy and never changed itself, for
// others may use it too. What it dials, trusts and keeps, its Jar, CheckRedirect
// and Timeout stay in force. A nil HTTPClient becomes go-retryablehttp's default.
//
// The options are those of [httpmw.New], and [WithCheckRetry].
// [httpmw.WithAttemptHook] takes the place of the client's PrepareRetry and of its
// RequestLogHook for repeats.
//
// The error is that of httpmw.New, or says that client is nil or has a kit
// already; the client is as it was then.
func Install(client *retryablehttp.Client, k *holdfast.Kit, opts ...httpmw.Option) error {
	if client == nil {
		return errors.New("retryable: the client is nil; make one with retryablehttp.NewClient")
	}
	inner := client.HTTPClient
	if inner == nil {
		inner = retryablehttp.NewClient().HTTPClient
	}
	if _, ours := inner.Transport.(transport); ours {
		return errors.New("retryable: the client has a kit already")
	}

	// The user's options come last: the later one of a kind counts.
	opts = append([]httpmw.Option{httpmw.WithAttemptHook(hooks{client}.attempt)}, opts...)
	over, err := httpmw.New(inner.Transport, k, opts...)
	if err != nil {
		return err
	}

	driven := *inner
	driven.Transport = transport{over}
	client.HTTPClient = &driven
	client.RetryMax = 0
	client.CheckRetry = never
	client.ErrorHandler = retryablehttp.PassthroughErrorHandler
	return nil
}

// transport is the kit's without CloseIdleConnections: go-retryablehttp calls that
// after every error, a refusal by the kit included, and would throw away the
// connections of the calls that go well.
type transport struct{ kit http.RoundTripper }

func (t transport) RoundTrip(req *http.Request) (*http.Response, error) { return t.kit.RoundTrip(req) }
