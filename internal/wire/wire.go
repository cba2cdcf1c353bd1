// Package wire lets a protocol adapter tell a kit how its protocol names
// methods. The type is internal: only holdfast's own adapters bind a kit.
package wire

import "github.com/holdfast-go/holdfast/call"

// Protocol is how one protocol writes the names in a kit's method table.
type Protocol struct {
	// Name is "grpc" or "http".
	Name string

	// Parse checks a name and returns its one canonical form, the key.
	Parse func(name string) (key string, err error)

	// Conflict returns an error if the keys cannot stand in one table. Nil
	// means that any distinct keys can.
	Conflict func(keys []string) error

	// Broader reads the keys of a table, and returns what says which of them apply to
	// all that one of them applies to: nearest first, without that key itself. Nil is:
	// none does.
	Broader func(keys []string) func(key string) []string

	// OneMethod reports whether key names a single method rather than a group of
	// them. Only such an entry's Safety outranks what the wire declares.
	OneMethod func(key string) bool

	// Declared returns what the protocol says about repeating the method that
	// key names, SafetyUnknown if it names a group.
	Declared func(key string) call.Safety

	// DeclaresAll says that the protocol declares the safety of every method, so
	// that the entry of a group cannot say more.
	DeclaresAll bool

	// Find reads a method as a user names it for Kit.Explain. It returns the
	// name in full, the key of the table's entry that applies ("" for Default)
	// and what the wire declares; ok is false if it is no name of the protocol.
	// has reports whether the table has a key, and routes are what Routes has made.
	Find func(method string, has func(key string) bool, routes any) (name, key string, declared call.Safety, ok bool)

	// Routes, if set, makes of a table's keys what the adapter finds entries by. It
	// is kept with the table, and so replaced with it by an update.
	Routes func(keys []string) any

	// Waits says, for Kit.Explain, how far the limits reach in this protocol.
	Waits Waits
}

// Waits describes the reach of each limit in words.
type Waits struct {
	Attempt      string // what Limits.Attempt bounds, such as "to the response headers"
	FirstMessage string // "" if the protocol knows no first message
	Lengths      bool   // a body's length may be known beforehand
	Rest         string // what Limits.Idle bounds, such as "each read of the body"; "" if nothing
}
