// Package retryable puts a kit into a client of go-retryablehttp, such as many
// API SDKs keep and let their users reach:
//
//	sdk := vendor.NewClient(...)
//	err := retryable.Install(sdk.HTTP, kit) // sdk.HTTP is a *retryablehttp.Client
//
// From then on the kit makes every request by its policies, as an
// [httpmw.Transport] does, and go-retryablehttp makes each call once. The SDK and
// the code that uses it stay as they are.
//
// # What changes for the client's user
//
//   - An open circuit and a full bulkhead refuse at once: the error matches
//     breaker.ErrOpen or bulkhead.ErrFull. Neither is tried again.
//   - The kit decides what is repeated, how often, and after what wait. RetryMax,
//     RetryWaitMin, RetryWaitMax, Backoff and CheckRetry count no longer; give the
//     client's own CheckRetry a say with [WithCheckRetry].
//   - A POST or PATCH without Idempotency-Key is repeated only if nothing of it was
//     sent. Where a repeat is known to do no harm, the Safety of the kit's policy
//     for that route says so.
//   - A Retry-After beyond the policy's RetryAfterCap ends the call, at once and
//     with the response that carries it. go-retryablehttp waits as long as it is
//     told to.
//   - A call that is out of attempts returns its last response, with a nil error
//     and a body that is readable from its first byte. There is no "giving up
//     after 5 attempt(s)"; [httpmw.Stopped] tells why a call ended short of its
//     attempts. Check the status.
//   - ErrorHandler runs no more. Where there is no response the error is the
//     *url.Error of http.Client, with the wire's or the kit's error inside.
//   - Redirects are followed as before, but a hop that fails is repeated alone and
//     not the chain from its start.
//   - PrepareRetry runs before each repeat on that attempt's own copy of the
//     request: what it sets is gone with the attempt, and the caller's request is
//     not changed. Its Body is empty, as it was before, and GetBody opens another.
//   - RequestLogHook runs for each attempt, numbered from 0 as before. Behind a
//     redirect the count begins anew, with 1 for the first repeat of that hop.
//     ResponseLogHook runs once a call.
//   - A failed call leaves idle connections alone. So does CloseIdleConnections of
//     the client's HTTPClient: call it on the http.Client or transport that it was
//     made of.
//   - HTTPClient.Timeout, if set, bounded each attempt; it now bounds the whole
//     call with its waits. The kit's Timeout layer bounds both.
//   - An error of a response handler (Request.SetResponseHandler) is returned with
//     the response and not repeated.
//   - A request body that go-retryablehttp is given as an io.Reader is read into
//     memory whole before it is sent, as before, by itself.
//   - A body given as an io.ReadSeeker, such as a *strings.Reader or a file, is one
//     reader for all attempts. Do not hedge its route: []byte, *bytes.Buffer,
//     *bytes.Reader and a ReaderFunc give each attempt a reader of its own.
//   - Logger gets the lines that go-retryablehttp writes itself, one a call. They
//     hold URLs with their queries, as before; the kit adds none.
package retryable
