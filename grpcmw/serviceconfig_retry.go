package grpcmw

import (
	"context"

	"google.golang.org/grpc/codes"

	"github.com/holdfast-go/holdfast/call"
	"github.com/holdfast-go/holdfast/retry"
)

// retryPolicy reads a policy by the rules of gRPC proposal A6.
func (p piece) retryPolicy() (*retry.Policy, codeSet) {
	members := p.object("maxAttempts", "initialBackoff", "maxBackoff", "backoffMultiplier", "retryableStatusCodes")
	field := func(name string) (piece, bool) {
		m, ok := members[name]
		if !ok && members != nil {
			p.faults.Add(p.at+"."+name, nil, "is missing")
		}
		return m, ok
	}
	policy := &retry.Policy{}
	if m, ok := field("maxAttempts"); ok {
		policy.MaxAttempts = m.attempts()
	}
	if m, ok := field("initialBackoff"); ok {
		policy.Backoff.Base = m.duration()
	}
	if m, ok := field("maxBackoff"); ok {
		policy.Backoff.Cap = m.duration()
	}
	if m, ok := field("backoffMultiplier"); ok {
		if policy.Backoff.Factor = m.number(); policy.Backoff.Factor < 1 {
			m.fault("the kit's waits do not shrink: it must be at least 1")
		}
	}
	// Longer than the longest is as long as that, from the first wait on.
	policy.Backoff.Base = min(policy.Backoff.Base, policy.Backoff.Cap)
	var repeated codeSet
	if m, ok := field("retryableStatusCodes"); ok {
		repeated = m.codes()
	}
	return policy, repeated
}

// hedgingPolicy reads a policy by the rules of A6.
func (p piece) hedgingPolicy() (*retry.Policy, codeSet) {
	members := p.object("maxAttempts", "hedgingDelay", "nonFatalStatusCodes")
	// A6 sends the next attempt at once after a failure that is not fatal.
	policy := &retry.Policy{Backoff: retry.NoWait()}
	if members == nil {
		return policy, 0
	}
	if m, ok := members["maxAttempts"]; ok {
		policy.MaxAttempts = m.attempts()
		policy.Hedge.Extra = policy.MaxAttempts - 1
	} else {
		p.faults.Add(p.at+".maxAttempts", nil, "is missing")
	}
	if m, ok := members["hedgingDelay"]; ok {
		policy.Hedge.Delay = m.duration()
	} else {
		p.faults.Add(p.at+".hedgingDelay", nil, "is missing; gRPC would send all attempts at once, which the kit does not do")
	}
	if m, ok := members["nonFatalStatusCodes"]; ok && string(m.text) != "[]" {
		return policy, m.codes()
	}
	return policy, 0
}

// codeSet is a set of status codes, a bit for each.
type codeSet uint32

func (s codeSet) has(code int) bool { return code >= 0 && code < 32 && s&(1<<code) != 0 }

// codes reads a list of codes that are to be repeated.
func (p piece) codes() codeSet {
	var s codeSet
	for _, m := range p.list() {
		before := len(*m.faults)
		code := m.code()
		switch code {
		case codes.OK, codes.Canceled, codes.DataLoss:
			if len(*m.faults) == before {
				m.fault("the kit never repeats what ends with this code")
			}
		}
		s |= 1 << code
	}
	return s
}

// classify says of each failure whether it is to be repeated: that of an attempt
// that ended with one of the codes.
func (s codeSet) classify(_ context.Context, _ call.Info, res call.Result) call.Result {
	switch {
	case res.Class == call.OK:
	case !s.has(res.Code):
		res.NoRetry = true
	case res.Class == call.ClientFault:
		res.Retry = true
	}
	return res
}

// throttling reads a retryThrottling as a budget.
func (p piece) throttling() retry.Budget {
	members := p.object("maxTokens", "tokenRatio")
	budget := retry.Budget{Shared: true}
	field := func(name string, least, most float64, want string) float64 {
		m, ok := members[name]
		if !ok {
			if members != nil {
				p.faults.Add(p.at+"."+name, nil, "is missing")
			}
			return 0
		}
		x := m.number()
		if x < least || x > most {
			m.fault(want, least, most)
		}
		return x
	}
	budget.Cap = field("maxTokens", 2, 1000, "must be from %v, with less there is no repeat, to %v") / 2
	budget.Share = field("tokenRatio", 0.001, 1, "must be from %v to %v for the kit")
	budget.Initial = budget.Cap
	// gRPC's tokens do not grow by themselves; this is as little as can be.
	budget.PerSecond = max(1e-6, budget.Cap/1e8)
	return budget
}
