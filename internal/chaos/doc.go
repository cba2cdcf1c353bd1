// Package chaos lets clients of both wires run against servers that restart, behind
// a proxy that delays, resets, cuts and stalls what passes it, while policies are
// changed and breakers forced. It says at the end what was lost:
//
//	go test ./internal/chaos -run Soak -soak 10m
//
// A run prints its seed, from which all that is drawn comes; -seed N takes it up
// again. What the clock and the scheduler make of it is another matter each time.
package chaos
