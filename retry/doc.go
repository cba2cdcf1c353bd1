// Package retry decides whether a call is worth another attempt, and when.
//
// An attempt is one try at the dependency; the first is one too. After each
// [Policy.Next] is asked:
//
//	for n := 1; ; n++ {
//		result := attempt()
//		if result.Class == call.OK {
//			bucket.Earn()
//		}
//		next := policy.Next(retry.Input{
//			Attempt: n, Result: result, Safety: call.Idempotent,
//			Left: time.Until(deadline), Bucket: bucket, U: 1 - rand.Float64(),
//		})
//		if !next.Again {
//			return result, next.Reason
//		}
//		time.Sleep(next.Delay)
//	}
//
// [Policy.Next] is the whole rule: one decision from what is known at the end
// of an attempt, pure but for the budget. [Backoff] says how long to wait and
// [Bucket] holds the budget, so that retries cost little when everything fails.
// [Hedge] says when another attempt is sent beside one that is still unanswered.
// There is no loop here and no sleep: whoever makes the attempts owns both.
//
// The functions and methods that end in At take a reading of the clock that a kit hands
// from layer to layer; the type of it is internal. They are for the kit's own packages and
// change without notice; each has a counterpart here.
package retry
