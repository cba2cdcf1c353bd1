package main

// whys says, of the rows whose goals are not met, what the time and the memory go
// to. It is printed where a row misses its goal.
var whys = map[string]string{
	"attempt limit, the callee asks Done":      atLimit,
	"attempt limit, Do, the callee never asks": atLimit,

	"stack, no limit, once":                     perCall,
	"stack, caller's deadline sooner, once":     perCall,
	"stack, own limit, once":                    perCall,
	"grpc stub, no limit, once":                 perCall,
	"grpc stub, caller's deadline sooner, once": perCall,
	"grpc stub, own limit, once":                perCall,

	"http stub, GET": perRequest,
	"http stub, GET, caller's deadline sooner": perRequest,
	"http stub, PUT 64 KiB":                    perUpload,

	"http loopback, GET":                           perConnection,
	"http loopback, GET, caller's deadline sooner": perConnection,
}

const (
	perCall = "the goal's prototype had no hooks, failover, shared state, tallies nor classification: their nil checks and the records that " +
		"carry them through a call are the difference; two clock readings are two fifths of a Do, and a quarter of an RPC"
	atLimit    = "what is measured is all of Do, with the record of a call and two clock readings, and not the limit alone"
	perRequest = "the whole stack is half of it (see its rows); the rest finds policy and target, looks the request through, and makes the " +
		"attempt's own one, which with the mark of a call inside a call and its context is one object of 448 B"
	perUpload     = perRequest + "; the gate before the body and its GetBody are two more, of 64 B"
	perConnection = "the row with only a delay shows what half a microsecond of any work costs here; of the allocations five are those of " +
		"a context that somebody waits for, with the transport's own as its child, two its timer's, two the body's, two or three those of what " +
		"ends it when nobody reads it, and one the request"
)
