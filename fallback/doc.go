// Package fallback answers a read that its dependency failed to answer.
//
// # What a read gets
//
// Only a call that is ReadOnly gets an answer that is not the dependency's own, and
// only once it has failed: refused by the kit, throttled, answered with a fault of
// the server's, not answered at all or not in time, while its caller still waits. A
// client's own fault comes back unchanged.
//
// [Stale] keeps the dependency's answers and gives them once more. A policy must
// say whose an answer is: by a function, or [SharedByAll]. What it gives is marked,
// with its age, in the header fields Age and Cache-Status of HTTP or the keys of
// the same names in the response header of gRPC. Policy.Answer computes an answer:
// an empty list, a default. It comes after the stale one, knows why the call has
// failed, and is marked too.
//
// holdfast.Hooks.Fallback tells of each answer and of each failure.
//
// # What a write gets
//
// A write gets its error. Nothing was stored for later, and nothing is pretended.
// If the kit refused it or its time was over the error is a [*WriteError], which
// says whether the write may have taken effect. After a limit has passed nobody on
// this side can know: the request may have arrived, and only its answer be late.
//
// A write that must not be lost in an outage is the application's to keep, where
// its own transaction keeps its other data. The pattern is the transactional
// outbox:
//
//  1. In the transaction that changes the application's own tables, insert the
//     write into a table of things to send, with an idempotency key made now.
//     What is committed will be sent, and what is not will not be.
//  2. Tell the user what is true: that the write is accepted, not that it is done.
//  3. A worker sends what is in the table, oldest first, each time with the key
//     that the row was given, as the header Idempotency-Key or the metadata
//     idempotency-key. With a key the kit repeats a write as it does a read.
//  4. Only an answer ends a row: a success marks it sent, a client's fault marks it
//     rejected, for somebody to look at. Anything else, above all a timeout, leaves
//     it for the next round.
//
// The server keeps the key with the effect, in its own transaction, and answers a
// repeat with what it has answered the first time. So a write whose answer was lost
// has one effect, however often it is sent. Without that on the server's side a key
// is an empty promise.
//
// examples/outbox runs this against a service that goes down, and then loses its
// answers.
package fallback
