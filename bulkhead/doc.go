// Package bulkhead bounds how many attempts run at once against a dependency
// and how many may wait for their turn, first come, first served. The bound is
// fixed, or it follows what the dependency bears (see [Adaptive]).
//
// An attempt, which is one try at the dependency, asks for a permit and gives it back
// once it is over:
//
//	permit, err := b.Acquire(ctx)
//	if err != nil {
//		return err // a *FullError, which matches ErrFull
//	}
//	defer permit.Release()
//
// [Turn], and a few methods whose docstrings begin as its does, are for the kit's own
// packages and change without notice.
package bulkhead
