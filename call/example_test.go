package call_test

import (
	"fmt"

	"github.com/holdfast-go/holdfast/call"
)

// What the layers make of the end of an attempt follows from its class, and from
// what repeating the call may do.
func Example() {
	for _, class := range []call.Class{call.OK, call.ClientFault, call.Throttled, call.Unavailable, call.Canceled} {
		fmt.Println(class, "counts as a failure:", class.Failed())
	}
	for _, safety := range []call.Safety{call.Unsafe, call.Idempotent, call.ReadOnly} {
		fmt.Println(safety, "may be repeated:", safety.Repeatable())
	}
	// Output:
	// ok counts as a failure: false
	// client_fault counts as a failure: false
	// throttled counts as a failure: false
	// unavailable counts as a failure: true
	// canceled counts as a failure: false
	// unsafe may be repeated: false
	// idempotent may be repeated: true
	// read_only may be repeated: true
}
