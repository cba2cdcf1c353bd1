package holdfast

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	"github.com/holdfast-go/holdfast/breaker"
	"github.com/holdfast-go/holdfast/bulkhead"
	"github.com/holdfast-go/holdfast/call"
	"github.com/holdfast-go/holdfast/fallback"
	"github.com/holdfast-go/holdfast/internal/wire"
	"github.com/holdfast-go/holdfast/retry"
	"github.com/holdfast-go/holdfast/timeout"
)

// Explanation says what protects a method, and why.
type Explanation struct {
	Method string // as it was asked for; of [Kit.Policies] the entry, "" for the methods without one
	Wire   string // "grpc", "http" or "do", the protocol that reads the name; "" if Unread
	Entry  string // the table's entry that applies, "Default" if none does
	Policy Policy // a copy of what is in force; a layer that is switched off is its Off value

	// Unread reports that neither an adapter nor [Do] has used the kit yet. The name was
	// read as Do reads it: an adapter may find the entry of a group or pattern that it
	// belongs to, and knows what the wire declares.
	Unread bool

	// From says where each layer comes from: an entry, "Default" or "Standard".
	From Origins

	Safety     call.Safety // what repeating the call may do; unknown if each method of a group has its own
	SafetyFrom string      // who says so

	// OneAttempt says why a call gets one attempt, unless nothing of the first
	// was sent. It is empty if the call may be repeated.
	OneAttempt string

	// Upstreams are the lists of upstreams that calls may be made on, each in its
	// order, the names with a comma between them. They are empty for calls that go to
	// one target.
	Upstreams []string

	// Fallbacks says what a call that has failed is answered with, in the order in
	// which it is asked. It is empty if the caller gets the error.
	Fallbacks []string

	// Waits names what bounds each wait of the call.
	Waits []Wait
}

// Origins says where the layers of a policy were set: in an entry, such as
// `Methods["GET /items/{id}"]`, or in "Default" or "Standard".
type Origins struct {
	Fallback, Retry, Breaker, Timeout, Bulkhead string
}

// Wait is one wait and what bounds it.
type Wait struct {
	What  string // such as "one attempt, to the response headers"
	Bound string // the limit, its length and where it comes from; or "only the caller's context"
}

// Explain returns what protects a method: a gRPC method, an HTTP method and URL
// or path ("GET /items/7"), or a name for [Do]. The name is read by the adapters
// that use the kit, and else as a plain name. So ask once the client is made: of a kit
// that nothing uses yet the answer says [Explanation.Unread]. If adapters use the kit and
// [Do] does not, what is neither a name of theirs nor in the table is an error. To
// explain changes nothing.
func (k *Kit) Explain(method string) (Explanation, error) {
	now, bound := k.bindings()
	var wires []string
	for _, b := range bound {
		if b.protocol.Find == nil {
			continue
		}
		t := now.tables[b.index]
		if name, key, declared, ok := b.protocol.Find(method, t.has, t.routes); ok {
			e, _ := t.find(key).explain(name, declared, b.protocol.Name, b.protocol.Waits)
			e.Upstreams = k.listsOf(b.protocol.Name)
			return e, nil
		}
		wires = append(wires, b.protocol.Name)
	}
	if _, entry := now.config.Methods[method]; len(wires) > 0 && now.plain == nil && !entry {
		return Explanation{}, fmt.Errorf("holdfast: %q is no name for %s, and Config.Methods has no such entry",
			method, strings.Join(wires, " or "))
	}
	t, err := k.plainTable()
	if err != nil {
		return Explanation{}, err
	}
	e, by := t.find(method).explain(method, call.SafetyUnknown, "", plainNames.Waits)
	if len(bound) == 0 {
		e.unread(by)
	}
	return e, nil
}

// plainTable returns the table as [Do] reads it, or would.
func (k *Kit) plainTable() (*Table, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	now := k.now.Load()
	if now.plain != nil {
		return now.plain, nil
	}
	d, faults := k.draft(now.config, &Binding{k, len(k.bound), plainNames})
	if err := faults.Err("holdfast"); err != nil {
		return nil, err
	}
	return d.plain, nil
}

// unread says what is not known before an adapter has read the names.
func (e *Explanation) unread(by sayer) {
	e.Unread, e.Wire = true, ""
	if by != nobody {
		return
	}
	e.SafetyFrom = "nobody yet: no adapter has read the names"
	if e.Policy.Retry.MaxAttempts != 1 && !e.Policy.Retry.IsOff() {
		e.OneAttempt = "no adapter has read the names yet, and only the wire may declare that " + e.Method +
			" may be repeated; for Do set Safety in its entry of Config.Methods, or in the call's Info"
	}
}

func (m *Method) explain(name string, declared call.Safety, protocol string, waits wire.Waits) (Explanation, sayer) {
	safety, by := m.saidSafety(declared)
	e := Explanation{
		Method: name, Wire: cmp.Or(protocol, plainNames.Name), Entry: m.field,
		Policy: Policy{
			Safety:   m.safety,
			Fallback: orOff(m.fallback.policy, fallback.Off), Retry: orOff(m.retry.policy, retry.Off),
			Breaker: orOff(m.breaker.policy, breaker.Off), Timeout: orOff(m.timeout.policy, timeout.Off),
			Bulkhead: orOff(m.bulkhead.policy, bulkhead.Off), Classify: m.classify,
		}.clone(), // what is in force is nobody's to change
		From: Origins{
			Fallback: m.fallback.from, Retry: m.retry.from, Breaker: m.breaker.from,
			Timeout: m.timeout.from, Bulkhead: m.bulkhead.from,
		},
		Safety: safety,
	}
	switch by {
	case theTable:
		e.SafetyFrom = m.safetyFrom
	case theWire:
		e.SafetyFrom = "the wire (" + protocol + ")"
	default:
		e.SafetyFrom = "nobody: not declared"
	}
	e.OneAttempt = m.oneAttempt(e, by, protocol)
	if e.Safety == call.ReadOnly {
		e.Fallbacks = fallbacks(e.Policy.Fallback, protocol != "")
	}
	e.Waits = m.waits(waits)
	return e, by
}

// oneAttempt says why a call of the method gets one attempt.
func (m *Method) oneAttempt(e Explanation, by sayer, protocol string) string {
	switch {
	case m.retry.policy == nil:
		return "Retry is off in " + m.retry.from
	case m.retry.policy.MaxAttempts == 1:
		return "Retry.MaxAttempts is 1 in " + m.retry.from
	case e.Safety.Repeatable():
		return ""
	case by == nobody:
		why := "nothing declares that " + e.Method + " may be repeated: set Safety in its entry of Config.Methods"
		if protocol == "" {
			why += ", or in the call's Info"
		}
		return why
	}
	return fmt.Sprintf("it is %v, says %s", e.Safety, e.SafetyFrom)
}

// waits names the bound of each wait.
func (m *Method) waits(reach wire.Waits) []Wait {
	var limits timeout.Limits
	if m.timeout.policy != nil {
		limits = *m.timeout.policy
	}
	named := func(field string, d time.Duration) string {
		if d == 0 {
			return "only the caller's context"
		}
		return fmt.Sprintf("%s %v, from %s", field, d, m.timeout.from)
	}
	attempt := named("Timeout.Attempt", limits.Attempt)
	if limits.Attempt == 0 {
		attempt = named("Timeout.Total", limits.Total)
	}
	ws := []Wait{
		{"the whole call, " + reach.Attempt, named("Timeout.Total", limits.Total)},
		{"one attempt, " + reach.Attempt, attempt},
	}
	if limits.IdleKnownLength && !reach.Lengths {
		limits.Idle = 0
	}
	rest := named("Timeout.Idle", limits.Idle)
	if limits.Idle > 0 && limits.IdleKnownLength {
		rest += ", if its length is known; else only the caller's context"
	}
	if reach.FirstMessage != "" {
		first := rest // it is a wait like the later ones then
		if limits.FirstMessage > 0 {
			first = named("Timeout.FirstMessage", limits.FirstMessage)
		}
		ws = append(ws, Wait{reach.FirstMessage, first})
	}
	if reach.Rest != "" {
		ws = append(ws, Wait{reach.Rest, rest})
	}
	if b := m.breaker.policy; b != nil && b.ProbeTimeout > 0 {
		limit := fmt.Sprintf("Breaker.ProbeTimeout %v, from %s", b.ProbeTimeout, m.breaker.from)
		ws = append(ws, Wait{"a probe of a half-open breaker", limit})
	}
	if b := m.bulkhead.policy; b != nil && b.Queue > 0 {
		queue := attempt
		if b.MaxWait > 0 {
			queue = fmt.Sprintf("Bulkhead.MaxWait %v, from %s", b.MaxWait, m.bulkhead.from)
		}
		ws = append(ws, Wait{"the bulkhead's queue", queue})
	}
	return ws
}

func orOff[P any](p *P, off func() *P) *P {
	if p == nil {
		return off()
	}
	return copied(p)
}

// String returns the explanation as text of several lines; of the zero Explanation,
// which comes with an error, it is empty.
func (e Explanation) String() string {
	if e.Entry == "" {
		return ""
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%s\n  entry: %s\n  safety: %v, says %s\n", e.Method, e.Entry, e.Safety, e.SafetyFrom)
	if e.Unread {
		b.WriteString("  unread: neither httpmw nor grpcmw has been given the kit; an adapter may find another entry, and knows what the wire declares\n")
	}
	for _, l := range []struct {
		name, from string
		off        bool
	}{
		{"fallback", e.From.Fallback, e.Policy.Fallback.IsOff()},
		{"retry", e.From.Retry, e.Policy.Retry.IsOff()},
		{"breaker", e.From.Breaker, e.Policy.Breaker.IsOff()},
		{"timeout", e.From.Timeout, e.Policy.Timeout.IsOff()},
		{"bulkhead", e.From.Bulkhead, e.Policy.Bulkhead.IsOff()},
	} {
		state := "on"
		if l.off {
			state = "off"
		}
		fmt.Fprintf(&b, "  %s: %s, from %s\n", l.name, state, l.from)
	}
	if e.OneAttempt != "" {
		fmt.Fprintf(&b, "  one attempt: %s\n", e.OneAttempt)
	}
	for _, list := range e.Upstreams {
		fmt.Fprintf(&b, "  failover: %s; %s\n", list, e.movesOn())
	}
	if !e.Policy.Fallback.IsOff() && e.Safety != call.ReadOnly {
		fmt.Fprintf(&b, "  after a failure: the error; only a read is answered otherwise, and it is %v\n", e.Safety)
	}
	for _, f := range e.Fallbacks {
		fmt.Fprintf(&b, "  after a failure: %s\n", f)
	}
	for _, w := range e.Waits {
		fmt.Fprintf(&b, "  wait: %s: %s\n", w.What, w.Bound)
	}
	return b.String()
}

// movesOn says when a call moves from one upstream to the next.
func (e Explanation) movesOn() string {
	if e.Safety.Repeatable() {
		return "the next has its turn at once after a refusal or a failure, until something was delivered"
	}
	return "the next has its turn at once after a refusal, and after a failure only if nothing was sent or the call carries an idempotency key"
}
