package holdfast

import (
	"context"
	"time"

	"github.com/holdfast-go/holdfast/breaker"
	"github.com/holdfast-go/holdfast/call"
)

// Hooks are functions that are called while calls run; nil ones are not, and cost
// nothing. They are called outside every lock. Those of a call get its context,
// and run on the caller's goroutine where nothing else is said. One that panics has
// its call release all it holds, and the panic goes on. The breakers' hooks get no
// context: see breaker.Hooks for when they run and what a panic does.
//
// [Kit.Attach] adds hooks to a kit that runs.
type Hooks struct {
	// Call is called when a call begins; the context that it returns, if not nil,
	// takes the place of the one given, from which it must come. The function that
	// it returns, if not nil, is called once when all of the call is over: it has
	// returned, and each of its attempts has ended, the last response body or stream
	// included; maybe on another goroutine, and in a call that is never read to its end
	// when the context ends. An HTTP attempt whose status says that it failed has ended
	// with its headers, whatever becomes of its body.
	Call func(context.Context, call.Info) (context.Context, func(CallEnd))

	// Attempt is called before each attempt is sent, hedges included, and before
	// an adapter's own attempt hook, which may sign what this one has set. It is
	// called on the goroutine that makes the attempt. The context that it returns,
	// if not nil, is what the attempt is made with, and must come from the one
	// given. The function that it returns, if not nil, is called once at the end
	// of the attempt, maybe on another goroutine: with that of its stream or of its
	// response body, but with its headers if the status says that the attempt failed.
	Attempt func(context.Context, call.Attempt) (context.Context, func(call.Result))

	// Returned is called when a call has returned to its caller: in HTTP with the
	// response's headers, in gRPC at the end of the stream, which may be on
	// another goroutine. A call that ends in a panic is not told.
	Returned func(context.Context, Returned)

	// Tried is called when an attempt has ended, or in HTTP has been answered with
	// headers. It is called on the goroutine that makes the attempt. It is not told
	// of streams, nor of an attempt that ends in a panic.
	Tried func(context.Context, Tried)

	// Retry is called once for each repeat that was admitted, before it is sent.
	Retry func(context.Context, Retry)

	// Failover is called once for each attempt that was admitted at another upstream
	// than the one that the call turned to before in the same round, be it that this
	// one failed or that it was passed over. The first upstream that a further round
	// turns to is no hop, wherever the round before has ended; Retry tells of the
	// round, with the first attempt in it that is admitted.
	Failover func(context.Context, Failover)

	// Refused is called when the kit itself turns a call away, or a repeat of one
	// that has failed.
	Refused func(context.Context, Refusal)

	// Hedged is called when a hedge was sent; HedgeWon when its answer is that of
	// the call.
	Hedged, HedgeWon func(context.Context, Hedge)

	// Queued is called when a wait in a bulkhead's queue has ended.
	Queued func(context.Context, Queued)

	// Fallback is called once for each call that a fallback has answered, or has
	// failed to answer. A cache that holds nothing for the call has not failed.
	Fallback func(context.Context, Fallback)

	// Transition and ProbeEnded are told of every breaker of the kit, after the
	// hooks in breaker.Config.
	Transition func(breaker.Transition)
	ProbeEnded func(breaker.ProbeEnd)
}

// Retry is a repeat about to be sent.
type Retry struct {
	Info    call.Info
	Attempt int           // its number in the call, from 2
	After   call.Result   // the end of the attempt before it
	Delay   time.Duration // the wait between them
}

// CallEnd is the end of a call.
type CallEnd struct {
	Info     call.Info   // with the safety in force
	Result   call.Result // of the last attempt that was made, or else the refusal
	Attempts int         // made; hedges included
	Err      error       // what the caller gets; nil where that is an answer
	Stopped  error       // why the call ended short of its attempts; nil if it did not
	Fallback bool        // the caller got a fallback's answer
}

// Returned is a call that has returned.
type Returned struct {
	CallEnd
	Took time.Duration // from its begin
}

// Tried is an attempt that has ended or was answered.
type Tried struct {
	Info   call.Info
	Number int
	Result call.Result
	Took   time.Duration // from its admission by every layer
}

// Hedge is an attempt that races another.
type Hedge struct {
	Info    call.Info
	Attempt int // its number in the call
}

// Queued is a wait for a bulkhead's permit.
type Queued struct {
	Info call.Info
	Took time.Duration
	Err  error // nil if the attempt got its permit
}

// Refusal is an attempt that the kit turned away.
type Refusal struct {
	Info    call.Info
	Cause   Cause
	Attempt int   // which one; from 2 on the call ends with the result of the one before
	Err     error // what matches the cause
}
