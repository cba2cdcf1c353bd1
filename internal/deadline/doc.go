// Package deadline makes the contexts that the limits of package timeout end: [Own]
// for an attempt that is one function, [Held] for one that outlives the function that
// makes it. [Bound] is the nearest of several limits, and [Caller] says whether it was
// the caller who ended the attempt.
package deadline
