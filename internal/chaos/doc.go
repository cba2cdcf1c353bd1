// Package chaos lets clients run through kits against servers that restart, behind
// proxies that delay, reset, cut and stall what passes them, while policies are
// changed and breakers forced. The clients speak HTTP/1.1, HTTP/2 and gRPC, unary and
// in streams, to one server or with failover to a second, and make calls with Do;
// they are hedged, answered from a cache or by a computed answer, and some share
// their breakers' state on a store that goes away and comes back. It says at the end
// what was lost, and which outcome is in no table:
//
//	go test ./internal/chaos -run Soak -soak 10m
//
// A run prints its seed, from which all that is drawn comes; -seed N takes it up
// again. What the clock and the scheduler make of it is another matter each time.
package chaos
