package grpcmw

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/check"
)

// ServiceConfig is a gRPC service config in the kit's terms.
type ServiceConfig struct {
	// Default is the policy of the entry with the empty name, for Config.Default.
	Default holdfast.Policy

	// Methods holds the policies of the other entries, for Config.Methods.
	Methods map[string]holdfast.Policy

	// Connection is what is left for the connection itself, as a service config
	// for grpc.WithDefaultServiceConfig: load balancing, health checks, and of the
	// methods waitForReady, the limits on the size of messages, and the timeout
	// of those that may be streams. It is empty if nothing is left.
	Connection string
}

// FromServiceConfig reads a gRPC service config, the JSON text that
// grpc.WithDefaultServiceConfig takes. An error names every bad field by its
// place, such as methodConfig[0].retryPolicy.maxAttempts; so it does for what
// gRPC passes over in silence, and for what the kit cannot keep.
//
// An entry of methodConfig becomes the policy of each of its names. As in gRPC
// the entry of a method holds alone, and so does that of a service: what it leaves
// out is not taken from a broader entry of the config but switched off. What no
// entry sets is nil and comes from the rest of the kit's table. It sets:
//
//   - timeout: Timeout.Total, without a limit on the single attempt. A stream's
//     Total ends when it is open, so where there may be streams gRPC itself is to
//     bound them, through Connection.
//   - retryPolicy: Retry, with Safety Idempotent: who lists codes to be repeated
//     says that an RPC may be repeated after the server has acted on it. The codes
//     become Classify: an attempt that ends with any other is not repeated,
//     whatever its class, nor is a dial that failed. A listed code that stands for
//     a fault of the client's, such as ABORTED, is repeated, and remains a sign of
//     life for the breaker. OK, CANCELLED and DATA_LOSS cannot be listed: the kit
//     never repeats those. The waits are spread over all of their length and not
//     over a fifth. A listed RESOURCE_EXHAUSTED that is the client's own, for a
//     message that is too large, is not repeated.
//   - hedgingPolicy: Retry with a Hedge, with Safety Idempotent; hedgingDelay
//     may not be zero. After any code but those in nonFatalStatusCodes no further
//     attempt is made; those under way may still answer, which gRPC would cancel.
//   - retryThrottling: the Budget of each of these, one for each target. It holds
//     half of maxTokens, for gRPC stops at the other half, and a success earns
//     tokenRatio, at most 1. Beyond that it differs: in gRPC every failure takes a
//     token, here each repeat or hedge does, so repeats go on at that rate where
//     gRPC makes none at all. Without retryThrottling the budget is the standard
//     one.
//
// Precedence of names is that of the kit's table and of gRPC: a method, its
// service, the empty name.
func FromServiceConfig(text string) (*ServiceConfig, error) {
	var faults check.Faults
	whole, err := readConfig(text, &faults)
	if err != nil {
		return nil, fmt.Errorf("grpcmw: the service config is no JSON: %w", err)
	}
	s := &ServiceConfig{Methods: map[string]holdfast.Policy{}}
	rest := connectionConfig{}
	members := whole.object("methodConfig", "retryThrottling", "loadBalancingPolicy", "loadBalancingConfig", "healthCheckConfig")
	for _, name := range []string{"loadBalancingPolicy", "loadBalancingConfig", "healthCheckConfig"} {
		if m, ok := members[name]; ok {
			rest[name] = m.text // to be judged by gRPC
		}
	}
	entries := map[string]*methodConfig{}
	if m, ok := members["methodConfig"]; ok {
		read := readMethods(m)
		for _, e := range read {
			e.enter(entries)
		}
		rest.add(read)
	}
	if m, ok := members["retryThrottling"]; ok {
		budget := m.throttling()
		for _, e := range entries {
			if e.retry != nil {
				e.retry.Budget = budget
			}
		}
	}
	for name, e := range entries {
		if p := e.policy(name, entries); name == "" {
			s.Default = p
		} else {
			s.Methods[name] = p
		}
	}
	if err := faults.Err("grpcmw: service config"); err != nil {
		return nil, err
	}
	s.Connection = rest.String()
	return s, nil
}

// Merge returns a copy of c with the policies of s: what a policy of s sets takes
// the place that c's policy of the same name leaves nil. A layer that both set is
// an error that names it; a Safety of c's stands.
func (s *ServiceConfig) Merge(c holdfast.Config) (holdfast.Config, error) {
	var faults check.Faults
	c.Default = merged("Default", c.Default, s.Default, &faults)
	c.Methods = maps.Clone(c.Methods)
	if c.Methods == nil {
		c.Methods = make(map[string]holdfast.Policy, len(s.Methods))
	}
	written := make(map[string]string, len(c.Methods))
	for name := range c.Methods {
		if key, err := parseName(name); err == nil {
			written[key] = name
		}
	}
	for _, key := range slices.Sorted(maps.Keys(s.Methods)) {
		name, ok := written[key]
		if !ok {
			name = key
		}
		c.Methods[name] = merged(fmt.Sprintf("Methods[%q]", name), c.Methods[name], s.Methods[key], &faults)
	}
	return c, faults.Err("grpcmw")
}

func merged(field string, c, s holdfast.Policy, faults *check.Faults) holdfast.Policy {
	take := func(layer string, has, brings bool) bool {
		if has && brings {
			faults.Add(field+"."+layer, nil, "is set by the service config too")
		}
		return brings && !has
	}
	if s.Safety != 0 && c.Safety == 0 {
		c.Safety = s.Safety
	}
	if take("Retry", c.Retry != nil, s.Retry != nil) {
		c.Retry = s.Retry
	}
	if take("Timeout", c.Timeout != nil, s.Timeout != nil) {
		c.Timeout = s.Timeout
	}
	if take("Classify", c.Classify != nil, s.Classify != nil) {
		c.Classify = s.Classify
	}
	return c
}

// connectionConfig is the service config that is left for gRPC.
type connectionConfig map[string]json.RawMessage

// add takes in what the methods leave for gRPC. If one does all are named, for
// an entry hides the broader ones even if it sets nothing.
func (c connectionConfig) add(entries []*methodConfig) {
	var kept []map[string]json.RawMessage
	some := false
	for _, e := range entries {
		if e.name.text != nil {
			e.rest["name"] = e.name.text
			kept = append(kept, e.rest)
			some = some || len(e.rest) > 1
		}
	}
	if text, err := json.Marshal(kept); some && err == nil {
		c["methodConfig"] = text
	}
}

// String returns it as text, empty if there is nothing in it.
func (c connectionConfig) String() string {
	if len(c) == 0 {
		return ""
	}
	text, err := json.Marshal(c)
	if err != nil {
		return "" // every part was valid JSON
	}
	return string(text)
}
