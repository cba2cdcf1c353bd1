package main

// whys says, of the rows whose goals are not met, what the time and the memory go
// to. It is printed where a row misses its goal.
var whys = map[string]string{
	"breaker closed, consecutive":                 perResult,
	"breaker closed, last 100":                    perResult,
	"breaker closed, last 100, 2 goroutines":      perResult,
	"breaker closed, last 100, 8 goroutines":      perResult,
	"breaker closed, 10 s window, time handed in": perResult,
	"breaker mixed, last 100":                     perFailure,
	"breaker closed, slow calls and stall":        perStall,
	"breaker closed, 10 s window, 2 goroutines":   oneWord,
	"breaker closed, 10 s window, 8 goroutines":   oneWord,
	"breaker open, refusal":                       perRefusal,
	"breaker open, refusal, 2 goroutines":         perRefusal,
	"bulkhead, free permit":                       perPermit,
	"bulkhead, free permit, 2 goroutines":         perPermit,

	"telemetry, metrics":                         perCount,
	"telemetry, metrics and a latency histogram": perHistogram,

	"grpc in memory, once":            perRPC,
	"grpc in memory, may be repeated": perRPC,
	"grpc loopback, once":             perRPC,
	"grpc loopback, may be repeated":  perRPC,

	"attempt limit, the callee asks Done":      besideStandard,
	"attempt limit, Do, the callee never asks": atLimit,

	"stack, no limit, once":                     perCall,
	"stack, caller's deadline sooner, once":     perCall,
	"stack, own limit, once":                    perCall,
	"grpc stub, no limit, once":                 perCall,
	"grpc stub, caller's deadline sooner, once": perCall,

	"http stub, GET": perRequest,
	"http stub, GET, caller's deadline sooner": perRequest,
	"http stub, PUT 64 KiB":                    perUpload,

	"http loopback, GET":                           perConnection,
	"http loopback, GET, caller's deadline sooner": perConnection,
}

const (
	perResult = "about eighty instructions, of which no profile has shown one to spare: a ticket knows its generation, its lease and whether " +
		"its owner has ended it, and Allow is not inlined"
	perFailure   = "a failure sets its place in the window under the lock, which is 80 ns one time in ten; while one is in the window a success moves that on by a compare-and-swap, else it writes nothing"
	perStall     = "two clock readings are 60 ns of it; the rest enters each attempt among those without an answer, and takes it out"
	oneWord      = "results are counted exactly, in one shared word of the bucket, for which the goroutines contend: two with a breaker each take 20 ns at best"
	perRefusal   = "the clock reading is three quarters of it; the rest are the state and its end, which all goroutines read, and the locked addition that counts the refusal"
	perPermit    = "three locked operations, where a mutex has two: to take, to mark the permit as given back, which any goroutine may do, and to give it back; and the check for a queue"
	perCount     = "a call is counted at its end by a locked addition of 5 ns; the rest are the look for the counters of its method and a deferred end, for a call that panics"
	perHistogram = "the SDK's own Record with three attributes takes 260 ns; the rest are what the hook is told of the call, the choice of the attributes and the counters"
	perRPC       = "by clock readings around the kit and inside of it, what takes 0.25 us in a row of stubs takes 1 us around an RPC, and with every " +
		"layer off no less: code and data are cold there, for a bare delay costs no more than itself; gRPC's part takes 0.5 us longer after it. A " +
		"limit's context adds 0.4 us to one by WithTimeout; where it may be repeated, gRPC's telling of peer, trailer and end 0.6 us, the rest 0.6 us"
	perCall = "the goal's prototype had no hooks, failover, shared state, tallies nor classification: their nil checks and the records that " +
		"carry them through a call are the difference; two clock readings are a third of a Do, and a quarter of an RPC, and what breaker and " +
		"bulkhead take by themselves a seventh of a Do"
	atLimit        = "what is measured is all of Do, with the record of a call and two clock readings, and not the limit alone"
	besideStandard = "beside the standard library's context, which somebody has asked for, there are the kit's own, of 64 B, and the clock " +
		"reading that an attempt begins with"
	perRequest = "of what is added the whole stack is a third (see its rows), and a sixth the attempt's own request, which with the mark of " +
		"a call inside a call and its context is one object of 448 B, the only one; the rest finds policy and target, looks the request through, " +
		"gives the answer its verdict and keeps a record of 904 B of it all, in steps of 4 to 26 ns each"
	perUpload     = perRequest + "; but for the body, of which the reader that net/http knows is two more, of 48 B"
	perConnection = "what takes the kit one or two microseconds in a row of requests takes it five to ten here, since between two requests others' code " +
		"and data fill the caches: the row with a request over the stub beside it shows that; the timer of a limit is 2 to 4 us of it. With a limit of " +
		"the kit's, five of the allocations are those of a context that somebody waits for, with the transport's own as its child, two its timer's, " +
		"two the body's, two the cleanup that ends a body which nobody reads, and one the request; with the caller's deadline sooner one is the request, which " +
		"has the mark of a call inside a call, one the body's, and three the watch for the end of the caller's context, should nobody read the body"
)
