// Package retry decides whether a call is worth another attempt, and when.
//
// [Policy.Next] is the whole rule: one decision from what is known at the end
// of an attempt, pure but for the budget. [Backoff] says how long to wait and
// [Bucket] holds the budget, so that retries cost little when everything fails.
// [Hedge] says when another attempt is sent beside one that is still unanswered.
// There is no loop here and no sleep: whoever makes the attempts owns both.
package retry
