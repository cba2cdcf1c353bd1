package holdfast

import (
	"errors"

	"github.com/holdfast-go/holdfast/breaker"
	"github.com/holdfast-go/holdfast/bulkhead"
	"github.com/holdfast-go/holdfast/retry"
	"github.com/holdfast-go/holdfast/timeout"
)

// Refused reports whether err says that a kit turned a call away without having
// made an attempt: the circuit was open, the bulkhead full, or too little time
// left. The dependency was not touched.
func Refused(err error) bool {
	if !errors.Is(err, breaker.ErrOpen) && !errors.Is(err, bulkhead.ErrFull) && !errors.Is(err, timeout.ErrFloor) {
		return false
	}
	// A call that stopped at an open circuit has made attempts before.
	_, stopped := errors.AsType[*retry.StoppedError](err)
	return !stopped
}
