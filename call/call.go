// Package call is the vocabulary that every part of holdfast shares: what is
// called ([Info]), what repeating it may do ([Safety]) and what the end of one
// attempt says about the dependency ([Class], [Result]).
package call

import "time"

// Info names one call.
type Info struct {
	// Target is the dependency: a gRPC target, or scheme, host and port of an
	// HTTP URL ("https://api.example.com:443").
	Target string

	// Method is the full gRPC method ("/pkg.Service/Method"), an HTTP route
	// pattern ("GET /items/{id}"), or any name for other calls.
	Method string

	// Resource is an optional finer part of the target that the caller names, such
	// as a model behind a channel.
	Resource string

	// Safety is what the wire declares for the method: the HTTP method's
	// meaning, the idempotency_level of a gRPC descriptor. Zero means nothing.
	Safety Safety
}

// Result is the verdict on the end of one attempt.
//
// It is made once, by the adapter that stands next to the wire; no other layer
// looks at the error again. A policy's Classify is given it and returns it amended:
// Class above all, since all layers go by that; RetryAfter, Retry and NoRetry for what
// the retry policy is to know. Err and Code say what came back, and nothing is judged
// by them: an error stays one for the caller, whatever its Class.
type Result struct {
	// Class is what the end says about the dependency. The zero Class is
	// invalid; from a Classify it counts as ServerFault.
	Class Class

	// Err is the attempt's error. It is nil for an OK, and for an HTTP
	// response, whatever its status. A Classify that sets it to nil has changed
	// nothing.
	Err error

	// Code is the HTTP status or the gRPC code of the answer; 0 if there was
	// none (or the gRPC code is OK).
	Code int

	// RetryAfter is how long the dependency asked to be left alone: the least wait
	// before a repeat, and the least cooldown, up to its MaxCooldown, of a breaker that
	// opens by this result. Zero means that it did not ask.
	RetryAfter time.Duration

	// Exact says that RetryAfter, be it zero, is the wait before a repeat and not
	// the least one, and that the back-off begins anew after it. It is gRPC's
	// pushback (grpc-retry-pushback-ms); HTTP has nothing like it.
	Exact bool

	// NotSent says that the request provably never reached the dependency, so
	// that repeating it is safe whatever it does. In doubt it is false: a Classify
	// that sets it has a write repeated that may have been done.
	NotSent bool

	// NoRetry says that an answer like this one is not to be repeated although
	// its class usually is, such as an HTTP 501.
	NoRetry bool

	// Retry says that a ClientFault may be repeated, which otherwise never is: a
	// policy's Classify sets it for what it knows to pass, such as a gRPC ABORTED.
	// It is a sign of life none the less. NoRetry outranks it.
	Retry bool
}
