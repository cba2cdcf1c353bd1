// Package memnet is a network in memory for tests. It works inside
// testing/synctest bubbles, where minutes of silence take milliseconds, and
// outside them.
//
// A [Listener] is one dependency's address. Its connections carry bytes both
// ways through buffers of [BufferSize] bytes, close by halves, honour deadlines
// and can be cut. Its switches play the ways a dependency fails:
//
//   - [Listener.Refuse]: nobody listens; a dial fails at once.
//   - [Listener.Hang]: the way to it is dead; a dial waits for its context.
//   - [Listener.Silence]: connections stay, and take bytes, and deliver none.
//   - [Listener.Reset]: every connection is cut.
//
// [Start] puts an HTTP server on such a wire and hands back a transport that
// reaches it; the package memgrpc below does the same for gRPC. Both end at the
// test's clean-up in a way that leaves no goroutine, so that a bubble can end.
//
// Whatever is made in a bubble must be used in that bubble only. All waits are
// durably blocking. Nothing is kept in package variables and no name is looked
// up.
package memnet

// TB is the part of testing.TB that the helpers use. It is also what a rapid.T
// has.
type TB interface {
	Helper()
	Cleanup(func())
	Fatalf(format string, args ...any)
}
