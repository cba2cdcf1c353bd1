package holdfast

import (
	"context"

	"github.com/holdfast-go/holdfast/call"
	"github.com/holdfast-go/holdfast/fallback"
	"github.com/holdfast-go/holdfast/internal/check"
	"github.com/holdfast-go/holdfast/retry"
	"github.com/holdfast-go/holdfast/timeout"
)

// Override replaces layers of a method's policy for one call. A nil layer, and
// SafetyUnknown, leave the policy's. The breaker and the bulkhead cannot be
// overridden: they belong to all calls of the dependency.
type Override struct {
	Safety   call.Safety   // outranks the policy's and what the wire declares
	Retry    *retry.Policy // the policy's budget holds; this one's only if it has none
	Timeout  *timeout.Limits
	Fallback *fallback.Policy
}

// WithOverride returns a context whose next kit call is made under o. It holds
// for that call only, not for kit calls made inside it. A bad override fails the
// call with an error that names the field.
func WithOverride(ctx context.Context, o Override) context.Context {
	s := *surroundingsOf(ctx)
	s.override = &o
	return context.WithValue(ctx, surroundingsKey{}, &s)
}

func (o *Override) check(safety call.Safety) check.Faults {
	var faults check.Faults
	layers := Policy{Safety: o.Safety, Retry: o.Retry, Timeout: o.Timeout, Fallback: o.Fallback}
	faults.In("Override", layers.check())
	if o.Fallback != nil && !o.Fallback.IsOff() && safety != call.ReadOnly {
		faults.Add("Override.Fallback", nil, "only a ReadOnly call may have one, and this is %v", safety)
	}
	return faults
}
