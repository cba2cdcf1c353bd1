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
package holdfast
