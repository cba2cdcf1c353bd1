// Package bulkhead bounds how many attempts run at once against a dependency
// and how many may wait for their turn, first come, first served. The bound is
// fixed, or it follows what the dependency bears (see [Adaptive]).
package bulkhead
