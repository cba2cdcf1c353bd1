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
// The rest is for the kit's own adapters, which hand a protocol's calls to a kit:
// Attempt, Binding, Call, Lane, Method, Room, Table, Terms, Upstream, Upstreams, Kit.Bind
// and Config.CheckFor. They take types of internal packages, and change without notice.
package holdfast
