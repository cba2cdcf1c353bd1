package grpcmw

import (
	"math"
	"strconv"
	"time"

	"github.com/holdfast-go/holdfast/call"
)

// pushback is the trailing metadata in which a server says when to repeat what it
// has failed, or that it is not to be repeated (gRPC proposal A6).
const pushback = "grpc-retry-pushback-ms"

// pushedBack reads the server's pushback. Once a number of milliseconds, of zero
// too, is the wait before the next attempt, whatever the back-off says; anything
// else forbids one.
func pushedBack(res call.Result, ev evidence) call.Result {
	values := ev.trailer[pushback]
	if len(values) == 0 || res.Class == call.OK {
		return res
	}
	ms, err := strconv.ParseInt(values[0], 10, 64)
	if len(values) > 1 || err != nil || ms < 0 {
		res.NoRetry = true
		return res
	}
	res.RetryAfter, res.Exact = time.Duration(math.MaxInt64), true
	if ms <= math.MaxInt64/int64(time.Millisecond) {
		res.RetryAfter = time.Duration(ms) * time.Millisecond
	}
	return res
}
