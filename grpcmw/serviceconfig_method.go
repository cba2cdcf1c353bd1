package grpcmw

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/call"
	"github.com/holdfast-go/holdfast/internal/wire/grpcwire"
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

// policy returns the policy of an entry under one of its names. What a broader
// entry sets and this one does not is switched off.
func (e *methodConfig) policy(key string, entries map[string]*methodConfig) holdfast.Policy {
	var broader []*methodConfig
	if grpcwire.IsMethod(key) {
		broader = append(broader, entries[grpcwire.ServiceOf(key)])
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
