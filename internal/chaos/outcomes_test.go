package chaos

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/breaker"
	"github.com/holdfast-go/holdfast/bulkhead"
	"github.com/holdfast-go/holdfast/fallback"
	"github.com/holdfast-go/holdfast/httpmw"
	"github.com/holdfast-go/holdfast/retry"
	"github.com/holdfast-go/holdfast/timeout"
)

// asked is a call as its caller knows it.
type asked struct {
	order
	ctx   context.Context
	kind  string
	read  bool // what it asks for may be answered by a fallback
	tells bool // a write's error says whether it was sent: that of a body does not
}

func (c *client) fault(a asked, format string, args ...any) {
	c.ledger.fault("%s %s: %s", a.kind, a.order, fmt.Sprintf(format, args...))
}

// The reasons for which a failed call is not repeated.
var reasons = map[string]error{
	"open": breaker.ErrOpen, "full": bulkhead.ErrFull, "budget": retry.ErrBudget, "no time": retry.ErrNoTime, "Retry-After": retry.ErrRetryAfter,
}

func reasonOf(err error) string {
	for name, reason := range reasons {
		if errors.Is(err, reason) {
			return name
		}
	}
	return ""
}

// judge holds an error against the table in docs/guide.md and returns what it is. What
// is neither in the table nor the wire's own fails the soak.
func (c *client) judge(a asked, err error) string {
	name := c.documented(a, err)
	if name == "" {
		c.fault(a, "an error that is in no table: %#v: %v", err, err)
		return "unknown"
	}
	c.judgeWrite(a, name, err)
	return name
}

func (c *client) documented(a asked, err error) string {
	if failed, ok := errors.AsType[*fallback.Error](err); ok {
		if !a.read || !errors.Is(err, errNoAnswer) || failed.Primary == nil {
			c.fault(a, "not a fallback that has failed: %v", err)
		}
		return "no fallback after " + c.documented(a, failed.Primary)
	}
	if stopped, ok := errors.AsType[*retry.StoppedError](err); ok {
		name := reasonOf(stopped.Reason)
		if name == "" || stopped.Last == nil || stopped.Attempts < 1 || !errors.Is(err, stopped.Last) || holdfast.Refused(err) {
			c.fault(a, "not a call that was stopped after an attempt: %v", err)
		}
		return "stopped: " + name
	}
	switch {
	case errors.Is(err, breaker.ErrOpen):
		if open, ok := errors.AsType[*breaker.OpenError](err); !ok || open.Key() == "" {
			c.fault(a, "open, and no *breaker.OpenError: %v", err)
		}
		return c.refused(a, "open", err)
	case errors.Is(err, bulkhead.ErrFull):
		return c.refused(a, "full", err)
	case errors.Is(err, timeout.ErrFloor):
		return c.refused(a, "floor", err)
	case errors.Is(err, timeout.ErrExceeded):
		if has, ok := errors.AsType[interface {
			error
			Timeout() bool
		}](err); !ok || !has.Timeout() || !errors.Is(err, context.DeadlineExceeded) {
			c.fault(a, "a limit that does not say it is one: %v", err)
		}
		return "limit"
	case errors.Is(err, context.Canceled):
		if a.ctx.Err() == nil {
			c.fault(a, "nobody has cancelled: %v", err)
		}
		return "canceled"
	case errors.Is(err, context.DeadlineExceeded):
		if deadline, _ := a.ctx.Deadline(); time.Now().Before(deadline) {
			c.fault(a, "the deadline has not passed: %v", err)
		}
		return "deadline"
	case ofWire(err) != nil:
		return "failed"
	}
	return ""
}

// refused is a call of which nothing was sent.
func (c *client) refused(a asked, name string, err error) string {
	if !holdfast.Refused(err) {
		c.fault(a, "holdfast.Refused does not know it: %v", err)
	}
	c.ledger.claimUnsent(a.kind, a.order, name)
	return name
}

// judgeWrite looks for what the error of a write says of its being sent, which no
// other error has.
func (c *client) judgeWrite(a asked, name string, err error) {
	write, ok := errors.AsType[*fallback.WriteError](err)
	if !ok {
		last := err
		if stopped, ok := errors.AsType[*retry.StoppedError](err); ok {
			last = stopped.Last
		}
		own := name == "open" || name == "full" || name == "floor" || name == "deadline" || errors.Is(last, timeout.ErrExceeded)
		if own && !a.read && a.tells {
			c.fault(a, "an error of the kit's own that does not say what it means for a write: %v", err)
		}
		return
	}
	if a.read || !a.tells {
		c.fault(a, "the error of a write: %v", err)
	}
	if !write.Sent {
		c.ledger.claimUnsent(a.kind, a.order, "not sent, says "+name)
	}
}

// judgeResponse judges an HTTP response and returns whose it is: "" if the server's.
func (c *client) judgeResponse(a asked, resp *http.Response) string {
	stopped := httpmw.Stopped(resp)
	answer := c.judgeMark(a, resp.Header.Values(fallback.CacheStatusField), resp.Header.Get(fallback.AgeField))
	switch {
	case answer != "":
		if resp.StatusCode != http.StatusOK || stopped != nil {
			c.fault(a, "%s, with status %d and %v", answer, resp.StatusCode, stopped)
		}
		return answer
	case resp.StatusCode != a.code || resp.Header.Get(idField) != a.id:
		c.fault(a, "answered with %d of %s", resp.StatusCode, resp.Header.Get(idField))
	}
	if stopped == nil {
		return ""
	}
	reason := stopped.Reason
	if failed, ok := errors.AsType[*fallback.Error](error(stopped)); ok {
		if !a.read || !errors.Is(failed, errNoAnswer) {
			c.fault(a, "not a fallback that has failed: %v", stopped)
		}
		if reason = failed.Primary; reason == nil {
			return "" // its attempts were used up before
		}
	}
	name := reasonOf(reason)
	if name == "" || stopped.Attempts < 1 || a.code == http.StatusOK || a.code == http.StatusNotFound {
		c.fault(a, "not a call that was stopped: %v after %d attempts", stopped, stopped.Attempts)
	}
	return "stopped: " + name
}

// judgeMark judges by the marks in a response's header whether it is a fallback's
// answer: "" if it is not.
func (c *client) judgeMark(a asked, cacheStatus []string, age string) string {
	answer := ""
	switch {
	case !fallback.MarkedBy(cacheStatus):
		if age != "" {
			c.fault(a, "the age of an answer from nowhere: %s", age)
		}
		return ""
	case age != "":
		if answer = "stale"; !a.kept() {
			c.fault(a, "an answer to what nobody keeps: %v", cacheStatus)
		}
	default:
		answer = computedText
	}
	if !a.read {
		c.fault(a, "a write was answered by a fallback: %v", cacheStatus)
	}
	return answer
}

// judgeStatus judges the error of an RPC, and its code.
func (c *client) judgeStatus(a asked, err error) string {
	st, ok := status.FromError(err)
	if !ok {
		c.fault(a, "an error without a status: %v", err)
	}
	name, want := c.judge(a, err), codeOf(err)
	if st.Code() != want {
		c.fault(a, "%s with code %v, not %v: %v", name, st.Code(), want, err)
	}
	if name != "failed" {
		return name
	}
	switch st.Code() {
	case codes.Code(a.code), codes.Unavailable, codes.Internal, codes.Unknown:
	default:
		c.fault(a, "a code that nobody ordered: %v", err)
	}
	return "failed " + st.Code().String()
}

// codeOf returns the code that the table has for an error: of one that joins several,
// the last failure's.
func codeOf(err error) codes.Code {
	if failed, ok := errors.AsType[*fallback.Error](err); ok {
		return codeOf(failed.Primary)
	}
	if stopped, ok := errors.AsType[*retry.StoppedError](err); ok {
		return codeOf(stopped.Last)
	}
	switch {
	case errors.Is(err, breaker.ErrOpen):
		return codes.Unavailable
	case errors.Is(err, bulkhead.ErrFull):
		return codes.ResourceExhausted
	case errors.Is(err, timeout.ErrFloor), errors.Is(err, context.DeadlineExceeded):
		return codes.DeadlineExceeded
	case errors.Is(err, context.Canceled):
		return codes.Canceled
	}
	return status.Code(ofWire(err))
}
