// Package sim takes a caller and its dependency through an outage in virtual time.
//
// It is a discrete-event simulation: time jumps from one event to the next, and
// nothing waits. What is simulated is the traffic, the caller's threads and the
// dependency. What decides is the kit's own code: the breakers, bulkheads, retry
// decisions and budgets are those of the packages breaker, bulkhead and retry, and
// are handed the simulated instants by the methods that the kit uses itself. The
// order in which they are asked is that of the kit's run.go; a test takes the real
// kit through the same arrivals and compares every decision.
//
// A run depends on its seed alone, the jitter of cooldowns and back-offs included.
package sim
