// Package holdfast keeps a client standing when what it calls falls over.
//
// Every call runs as
//
//	Fallback( Retry( CircuitBreaker( Timeout( Bulkhead( call ) ) ) ) )
//
// in that order, with one policy per method. A [Policy] is data; a [Kit] is the
// running state of policies: its breakers, bulkheads and retry budgets. Package
// grpcmw puts a kit into gRPC's interceptors, package httpmw into an
// http.RoundTripper, and [Do] runs anything else.
//
// Users need [Config], [Policy], [New], [Do], [Override] and what a Kit does.
// Attempt, Binding, Call, Lane, Method, Room, Table, Terms, Trial, Upstream and
// Upstreams, the functions Check and Sending and the method Kit.Bind are for adapters,
// which hand a protocol's calls to a kit.
package holdfast
