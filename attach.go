package holdfast

import (
	"context"
	"slices"

	"github.com/holdfast-go/holdfast/breaker"
	"github.com/holdfast-go/holdfast/call"
)

// Attach adds hooks to those of the kit, after the ones there are, until detach is
// called. Calls that have begun may go on without the new hooks, and to be told by
// the old ones.
func (k *Kit) Attach(h Hooks) (detach func()) {
	added := &h
	k.mu.Lock()
	defer k.mu.Unlock()
	k.attached = append(k.attached, added)
	k.joinHooks(k.now.Load())
	return func() {
		k.mu.Lock()
		defer k.mu.Unlock()
		k.attached = slices.DeleteFunc(slices.Clone(k.attached), func(other *Hooks) bool { return other == added })
		k.joinHooks(k.now.Load())
	}
}

// joinHooks lets the calls of an edition tell the hooks of its configuration and
// those attached. The caller holds k.mu, or has the kit for itself.
func (k *Kit) joinHooks(e *edition) {
	all := e.config.Hooks
	for _, h := range k.attached {
		all = joined(all, *h)
	}
	e.hooks.Store(&all)
}

// watch lets the kit's hooks be told of a breaker by that breaker's own ones.
func (k *Kit) watch(h breaker.Hooks) breaker.Hooks {
	h.Transition = afterwards(h.Transition, func(t breaker.Transition) {
		if tell := k.now.Load().hooks.Load().Transition; tell != nil {
			tell(t)
		}
	})
	h.ProbeEnded = afterwards(h.ProbeEnded, func(e breaker.ProbeEnd) {
		if tell := k.now.Load().hooks.Load().ProbeEnded; tell != nil {
			tell(e)
		}
	})
	return h
}

// joined returns hooks that are a and then b.
func joined(a, b Hooks) Hooks {
	return Hooks{
		Call:       nested(a.Call, b.Call, CallEnd{Err: context.Canceled}),
		Attempt:    nested(a.Attempt, b.Attempt, call.Result{Class: call.Refused}),
		Returned:   both(a.Returned, b.Returned),
		Tried:      both(a.Tried, b.Tried),
		Retry:      both(a.Retry, b.Retry),
		Failover:   both(a.Failover, b.Failover),
		Refused:    both(a.Refused, b.Refused),
		Hedged:     both(a.Hedged, b.Hedged),
		HedgeWon:   both(a.HedgeWon, b.HedgeWon),
		Queued:     both(a.Queued, b.Queued),
		Fallback:   both(a.Fallback, b.Fallback),
		Transition: afterwards(a.Transition, b.Transition),
		ProbeEnded: afterwards(a.ProbeEnded, b.ProbeEnded),
	}
}

// afterwards returns a function that calls a and then b, whatever a does.
func afterwards[T any](a, b func(T)) func(T) {
	switch {
	case a == nil:
		return b
	case b == nil:
		return a
	}
	return func(v T) {
		defer b(v)
		a(v)
	}
}

// both is afterwards for hooks.
func both[T any](a, b func(context.Context, T)) func(context.Context, T) {
	switch {
	case a == nil:
		return b
	case b == nil:
		return a
	}
	return func(ctx context.Context, v T) {
		defer b(ctx, v)
		a(ctx, v)
	}
}

// nested returns a hook that is b within a: it ends before a does. If b panics, a
// is told of an end that is unsaid.
func nested[T, E any](a, b func(context.Context, T) (context.Context, func(E)), unsaid E) func(context.Context, T) (context.Context, func(E)) {
	switch {
	case a == nil:
		return b
	case b == nil:
		return a
	}
	return func(ctx context.Context, v T) (context.Context, func(E)) {
		outer, endA := a(ctx, v)
		if outer == nil {
			outer = ctx
		}
		began := false
		defer func() {
			if !began && endA != nil {
				endA(unsaid)
			}
		}()
		inner, endB := b(outer, v)
		began = true
		if inner == nil {
			inner = outer
		}
		return inner, afterwards(endB, endA)
	}
}
