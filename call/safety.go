package call

// Safety says what repeating a call may do to the dependency's state. The
// values are ordered: a larger one allows all that a smaller one allows.
type Safety uint8

const (
	// SafetyUnknown is the zero value: nothing is declared. Where it is still
	// unknown when a decision is due, the call is treated as Unsafe.
	SafetyUnknown Safety = iota

	// Unsafe: a repeat may do the work twice.
	Unsafe

	// Idempotent: a repeat has the effect of one call.
	Idempotent

	// ReadOnly: the call changes nothing. Only such a call may be answered by a
	// fallback.
	ReadOnly

	safeties = int(ReadOnly) + 1
)

var safetyNames = [safeties]string{"unknown", "unsafe", "idempotent", "read_only"}

// String returns the safety in lower snake case.
func (s Safety) String() string {
	return name(safetyNames[:], s, "safety")
}

// Valid reports whether s is one of the values named here.
func (s Safety) Valid() bool { return int(s) < safeties }

// Repeatable reports whether a call may be sent again although the dependency
// may already have acted on it.
func (s Safety) Repeatable() bool { return s == Idempotent || s == ReadOnly }
