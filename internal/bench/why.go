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
	"http stub, PUT 64 KiB":                    perRequest,
}

const (
	perCall = "the goal's prototype had no hooks, failover, shared state, tallies nor classification: their nil checks and the records that " +
		"carry them through a call are the difference; two clock readings are two fifths of a Do, and a quarter of an RPC"
	atLimit    = "what is measured is all of Do, with the record of a call and two clock readings, and not the limit alone"
	perRequest = "a call's record, the attempt's own request, the response's wrapper, its context and the mark of a call inside a call are " +
		"each an object"
)
