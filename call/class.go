package call

import "strconv"

// Class is what the end of an attempt says about the dependency, and so what each
// layer makes of it:
//
//	class        counts for the breaker as  is repeated, if safe  is answered by a fallback
//	OK           success                    no                    no
//	ClientFault  success                    no                    no
//	Throttled    nothing                    yes                   yes
//	ServerFault  failure                    yes                   yes
//	Unavailable  failure                    yes                   yes
//	TimedOut     failure                    yes                   yes
//	Canceled     nothing                    no                    no
//	Refused      nothing                    no                    yes
//	Permanent    nothing                    no                    no
//
// A fallback answers reads alone. The packages grpcmw and httpmw say which status is of
// which class.
type Class uint8

// The classes. The zero Class is invalid, so that a forgotten verdict is never
// taken for a success.
const (
	_ Class = iota

	// OK: the dependency answered as asked.
	OK

	// ClientFault: the dependency answered that the request is at fault. It is
	// a sign of life, and repeating the request gives the same answer.
	ClientFault

	// Throttled: the dependency asks for less load.
	Throttled

	// ServerFault: the dependency answered that it failed.
	ServerFault

	// Unavailable: the dependency was not reached, or somebody on the way to it
	// says that it is not there.
	Unavailable

	// TimedOut: no answer came within a limit, the kit's or the caller's.
	TimedOut

	// Canceled: the caller no longer wants the answer.
	Canceled

	// Refused: holdfast itself turned the attempt away; the dependency was not
	// touched.
	Refused

	// Permanent: the request cannot be sent, now or later; nothing is said
	// about the dependency.
	Permanent

	classes = int(Permanent) + 1
)

var classNames = [classes]string{
	"invalid", "ok", "client_fault", "throttled", "server_fault",
	"unavailable", "timed_out", "canceled", "refused", "permanent",
}

// String returns the class in lower snake case, as metrics and logs show it.
func (c Class) String() string {
	return name(classNames[:], c, "class")
}

func name[T ~uint8](names []string, v T, kind string) string {
	if int(v) < len(names) {
		return names[v]
	}
	return kind + "(" + strconv.Itoa(int(v)) + ")"
}

// Valid reports whether c is one of the classes named here.
func (c Class) Valid() bool { return c >= OK && int(c) < classes }

// Failed reports whether the class speaks against the dependency: it was
// reached for and did not do its work.
func (c Class) Failed() bool {
	return c == ServerFault || c == Unavailable || c == TimedOut
}
