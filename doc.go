// Package holdfast keeps a client standing when what it calls falls over.
//
// Every call runs as
//
//	Fallback( Retry( CircuitBreaker( Timeout( Bulkhead( call ) ) ) ) )
//
// in that order, with one policy per method. A [Policy] is data; a [Kit] is the
// running state of policies: its breakers, bulkheads and retry budgets.
//
// A program begins with [New], for which the zero [Config] is enough: everything is
// inherited from [Standard]. It gives the kit to package grpcmw, which puts it into
// gRPC's interceptors, or to package httpmw, which puts it into an http.RoundTripper;
// [Do] runs anything else. [WithOverride] changes what a single call is made under,
// [WithResource] names the part of a target that it is for, and [Refused] tells the
// kit's own refusals from failures. [Kit.Explain] says what protects a method and why,
// [Hooks] are told of what calls do, and package telemetry makes metrics, traces, logs
// and a page of it.
//
// # Words
//
// A call is what the application asked for: an RPC, a request, a function. It is made
// of one attempt at the dependency or more, and what the kit itself turns away is a
// refusal: nothing was sent. A target is a dependency that calls go to, an authority of
// gRPC or scheme, host and port of HTTP; a resource is a part of one, such as a model
// behind a channel. A call's safety ([call.Safety]) says what repeating it may do, and
// the class of an attempt's end ([call.Class]) what that says about the dependency. A
// breaker that is open lets single probes through after a while, to see whether the
// dependency is back. A hedge is an attempt that races another. A layer is one of the
// five parts of a policy.
//
// # For adapters
//
// The rest is for the kit's own adapters, which hand a protocol's calls to a kit:
// Attempt, Binding, Call, Lane, Method, Room, Table, Terms, UnaryRoom, Upstream,
// Upstreams, Kit.Bind and Config.CheckFor. They take types of internal packages, and
// change without notice.
package holdfast
