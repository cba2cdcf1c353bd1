package holdfast

import (
	"context"
	"fmt"
	"reflect"
	"time"

	"github.com/holdfast-go/holdfast/call"
	"github.com/holdfast-go/holdfast/fallback"
)

// Fallback is what a fallback made of a call that failed: an answer, or none
// because it failed too.
type Fallback struct {
	Info  call.Info
	Kind  fallback.Kind // which part of the policy was asked last
	Age   time.Duration // of a stale answer
	After call.Result   // the end of the call that it stands in for
	Err   error         // why there is no answer; nil if there is one
}

// stand is a fallback's answer that the caller has not got yet.
type stand struct {
	kind fallback.Kind
	age  time.Duration
}

// Stale returns the policy for stale answers to the call, nil if it has none: no
// policy asks for them, or the call may change something.
func (c *Call) Stale() *fallback.Stale {
	if c.fallback == nil || c.info.Safety != call.ReadOnly {
		return nil
	}
	return c.fallback.Stale
}

// StaleFrom gives the call what reads its stale answer, once it has failed. A nil
// answer is none; an error says that the store failed. after is the class of the
// call's end.
func (c *Call) StaleFrom(read func(ctx context.Context, after call.Class) (answer any, age time.Duration, err error)) {
	c.stale = read
}

// Computes reports whether the policy has a fallback that may answer with a value of
// any type.
func (c *Call) Computes() bool { return c.fallback != nil && c.fallback.Answer != nil }

// TakesBy gives the call what takes a fallback's answer for the caller, or says why it
// is none for the caller. Where the fallback has failed, which failure says, it lets go
// of what came beside that, and returns failure. An adapter whose calls may have a
// fallback gives one to each that has.
func (c *Call) TakesBy(take func(answer any, failure error) error) { c.take = take }

// Fallback ends the call: with the fallback's answer if the policy has one that
// applies, and else with the call's own error. What becomes of a fallback is told here,
// and so before the call's end is.
func (c *Call) Fallback(ctx context.Context) (answer any, err error) {
	err = c.ofWrite(c.Err())
	if c.fallback == nil || !answerable(c.info.Safety, c.last.Class) || ctx.Err() != nil {
		return nil, err
	}
	var broken error
	if c.stale != nil && c.fallback.Stale != nil {
		c.stand = stand{kind: fallback.KindStale}
		if answer, c.stand.age, broken = c.stale(ctx, c.last.Class); answer != nil {
			return c.give(ctx, answer, nil)
		}
	}
	if c.fallback.Answer != nil && ctx.Err() == nil {
		c.stand = stand{kind: fallback.KindComputed}
		answer, broken = c.fallback.Answer(ctx, fallback.Failure{
			Info: c.info, Class: c.last.Class, Err: err, Code: c.last.Code, Attempts: c.made(),
		})
	}
	if answer == nil && broken == nil { // there is none after all
		return nil, err
	}
	return c.give(ctx, answer, broken)
}

// answerable reports whether a call of this safety that ended in this class may be
// answered by a fallback. A client's own fault, a cancelled call and an answer
// of the dependency's own come back unchanged.
func answerable(safety call.Safety, class call.Class) bool {
	return safety == call.ReadOnly && (class == call.Refused || class == call.Throttled || class.Failed())
}

// give ends the call with an answer, if it is one for the caller and failure is nil.
func (c *Call) give(ctx context.Context, answer any, failure error) (any, error) {
	if c.take != nil && answer != nil {
		failure = c.take(answer, failure)
	}
	c.answered = failure == nil
	c.tellFallback(ctx, failure)
	if failure == nil {
		return answer, nil
	}
	if err := c.Err(); err != nil {
		return nil, &fallback.Error{Primary: err, Fallback: failure}
	}
	// An HTTP response stands, and says so by Stopped.
	c.stopped = &fallback.Error{Primary: c.stopped, Fallback: failure}
	return nil, nil
}

func (c *Call) tellFallback(ctx context.Context, failure error) {
	if tell := c.hooks.Fallback; tell != nil {
		tell(ctx, Fallback{Info: c.info, Kind: c.stand.kind, Age: c.stand.age, After: c.last, Err: failure})
	}
}

// Stale returns the policy for stale answers to the method's calls, if they are
// reads; nil if there is none.
func (m *Method) Stale() *fallback.Stale {
	if m.fallback.policy == nil {
		return nil
	}
	return m.fallback.policy.Stale
}

// KeepsStale reports whether any method of the table has a policy for stale
// answers.
func (t *Table) KeepsStale() bool { return t.keeps }

// fallbacks says in words what a read is answered with, in the order in which it is
// asked. cached says that its adapter has a cache.
func fallbacks(p *fallback.Policy, cached bool) (answers []string) {
	if p.Stale != nil && cached {
		s := p.Stale.WithDefaults()
		whose := "kept for each identity"
		if reflect.ValueOf(s.Identity).Pointer() == reflect.ValueOf(fallback.SharedByAll).Pointer() {
			whose = "shared by all"
		}
		answers = append(answers, fmt.Sprintf("Fallback.Stale: an earlier answer, %s, younger than %v", whose, s.MaxStale))
	}
	if p.Answer != nil {
		answers = append(answers, "Fallback.Answer: a computed one")
	}
	return answers
}
