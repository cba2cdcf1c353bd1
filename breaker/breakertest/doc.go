// Package breakertest is for those who implement a [breaker.Store]: [Run] holds
// a store against what breakers rely on, and [Memory] is a store to compare with
// and to test fleets with in one process.
//
// It imports nothing but the standard library and package breaker.
package breakertest
