package grpcmw

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/call"
	"github.com/holdfast-go/holdfast/retry"
	"github.com/holdfast-go/holdfast/timeout"
)

// methodConfig is one entry of a service config's methodConfig.
type methodConfig struct {
	whole   piece
	name    piece
	names   []string // keys, "" for the empty name
	timeout *timeout.Limits
	retry   *retry.Policy
	codes   codeSet                    // that are repeated
	rest    map[string]json.RawMessage // left for gRPC
}

func readMethods(list piece) []*methodConfig {
	var entries []*methodConfig
	for _, p := range list.list() {
		entries = append(entries, readMethod(p))
	}
	return entries
}

func readMethod(p piece) *methodConfig {
	e := &methodConfig{whole: p, rest: map[string]json.RawMessage{}}
	members := p.object("name", "waitForReady", "timeout", "maxRequestMessageBytes", "maxResponseMessageBytes", "retryPolicy", "hedgingPolicy")
	var ok bool
	if e.name, ok = members["name"]; ok {
		for _, n := range e.name.list() {
			if key, ok := n.methodName(); ok {
				e.names = append(e.names, key)
			}
		}
	} else if members != nil {
		p.faults.Add(p.at+".name", nil, "is missing; gRPC passes over an entry without names")
	}
	for _, size := range []string{"maxRequestMessageBytes", "maxResponseMessageBytes"} {
		if m, ok := members[size]; ok {
			m.number()
			e.rest[size] = m.text
		}
	}
	if m, ok := members["waitForReady"]; ok {
		m.boolean()
		e.rest["waitForReady"] = m.text
	}
	if m, ok := members["timeout"]; ok {
		e.timeout = &timeout.Limits{Total: m.duration()}
		for _, key := range e.names {
			if mayStream(key) {
				e.rest["timeout"] = m.text
			}
		}
	}
	if m, ok := members["retryPolicy"]; ok {
		e.retry, e.codes = m.retryPolicy()
	}
	if m, ok := members["hedgingPolicy"]; ok {
		if e.retry != nil {
			m.fault("cannot stand beside retryPolicy")
		}
		e.retry, e.codes = m.hedgingPolicy()
	}
	return e
}

// methodName returns the key that a name of a service config has in a kit's
// table.
func (p piece) methodName() (key string, ok bool) {
	members := p.object("service", "method")
	var service, method string
	if m, ok := members["service"]; ok {
		service = m.str()
	}
	if m, ok := members["method"]; ok {
		method = m.str()
	}
	switch {
	case service == "" && method == "":
		return "", members != nil
	case service == "":
		p.fault("has a method but no service")
		return "", false
	case strings.HasPrefix(service, "/"):
		p.fault("must name the service without slashes")
		return "", false
	}
	name := service
	if method != "" {
		name += "/" + method
	}
	key, err := parseName(name)
	if err != nil {
		p.fault("%v", err)
		return "", false
	}
	return key, true
}

// enter puts the entry under each of its names.
func (e *methodConfig) enter(entries map[string]*methodConfig) {
	for i, key := range e.names {
		if other := entries[key]; other != nil {
			at := e.name
			at.at += fmt.Sprintf("[%d]", i)
			at.fault("is named in %s too", other.whole.at)
			continue
		}
		entries[key] = e
	}
}

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

// policy returns the policy of an entry under one of its names. What a broader
// entry sets and this one does not is switched off.
func (e *methodConfig) policy(key string, entries map[string]*methodConfig) holdfast.Policy {
	var broader []*methodConfig
	if isMethod(key) {
		broader = append(broader, entries[serviceOf(key)])
	}
	if key != "" {
		broader = append(broader, entries[""])
	}
	var p holdfast.Policy // each name has its own, to be changed by the user
	if e.timeout != nil {
		limits := *e.timeout
		p.Timeout = &limits
	}
	if e.retry != nil {
		again := *e.retry
		p.Retry, p.Safety, p.Classify = &again, call.Idempotent, e.codes.classify
	}
	for _, b := range broader {
		if b == nil {
			continue
		}
		if p.Timeout == nil && b.timeout != nil {
			p.Timeout = timeout.Off()
		}
		if p.Retry == nil && b.retry != nil {
			p.Retry = retry.Off()
			p.Classify = asItIs
			if declaredSafety(key) == call.SafetyUnknown {
				p.Safety = call.Unsafe // the broader entry's would be inherited
			}
		}
	}
	return p
}

// asItIs leaves the adapter's verdict alone.
func asItIs(_ context.Context, _ call.Info, res call.Result) call.Result { return res }

// mayStream reports whether a key of the table stands for a streaming method, or
// may do so.
func mayStream(key string) bool {
	streams := func(m protoreflect.MethodDescriptor) bool { return m.IsStreamingClient() || m.IsStreamingServer() }
	switch d := lookUp(strings.ReplaceAll(strings.TrimPrefix(key, "/"), "/", ".")).(type) {
	case protoreflect.MethodDescriptor:
		return streams(d)
	case protoreflect.ServiceDescriptor:
		for i := range d.Methods().Len() {
			if streams(d.Methods().Get(i)) {
				return true
			}
		}
		return false
	}
	return true
}
