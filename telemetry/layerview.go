package telemetry

import (
	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/call"
)

type bulkheadView struct {
	Kit     string `json:"kit"`
	Name    string `json:"name"`
	InUse   int    `json:"in_use"`
	Limit   int    `json:"limit"`
	Waiting int    `json:"waiting"`
}

type budgetView struct {
	Kit    string  `json:"kit"`
	Name   string  `json:"name"`
	Tokens float64 `json:"tokens"`
	Cap    float64 `json:"cap"`
}

type methodView struct {
	Kit       string            `json:"kit"`
	Name      string            `json:"name"`
	Calls     uint64            `json:"calls"`
	OK        uint64            `json:"ok"` // answered, be it that the request is at fault
	Attempts  uint64            `json:"attempts"`
	Retries   uint64            `json:"retries"`
	Denied    uint64            `json:"retries_denied"`
	Hedges    uint64            `json:"hedges,omitempty"`
	Fallbacks uint64            `json:"fallbacks,omitempty"`
	Refused   uint64            `json:"refused"`
	Causes    map[string]uint64 `json:"refused_by_cause,omitempty"`
}

type policyView struct {
	Kit    string  `json:"kit"`
	Wire   string  `json:"wire"`
	Entry  string  `json:"entry"`
	Safety string  `json:"safety,omitempty"`
	Once   string  `json:"one_attempt,omitempty"`
	Layers []layer `json:"layers"`
}

func (p *Operations) lookAtTheRest(v *view, i int, k *holdfast.Kit) {
	name := k.Name()
	for key, b := range k.Bulkheads() {
		in, waiting := b.InUse(), b.Waiting()
		if in+waiting == 0 {
			v.Idle++
		} else if key = redact(key); matches(v.Query, key, name) {
			v.Bulkheads = append(v.Bulkheads, bulkheadView{name, key, in, b.Limit(), waiting})
		}
	}
	for key, b := range k.Budgets() {
		if key = redact(key); b != nil && !b.Full() && matches(v.Query, key, name) {
			v.Budgets = append(v.Budgets, budgetView{name, key, b.Tokens(), b.Budget().Cap})
		}
	}
	for method, t := range k.Tallies() {
		if m := methodOf(name, redact(method), t); m.Calls+m.Attempts > 0 && matches(v.Query, m.Name, name) {
			v.Methods = append(v.Methods, m)
		}
	}
	for _, e := range k.Policies() {
		entry := policyView{Kit: name, Wire: e.Wire, Entry: e.Entry, Layers: layers(e), Once: e.OneAttempt}
		if e.Method != "" {
			entry.Entry, entry.Safety = e.Method, words(e.Safety.String())
		} else {
			entry.Entry, entry.Once = "every other method", ""
		}
		v.Policies = append(v.Policies, entry)
	}
}

func methodOf(kit, name string, t *holdfast.Tally) methodView {
	m := methodView{Kit: kit, Name: name, Retries: t.Retries(), Hedges: t.Hedges(), Fallbacks: t.Fallbacks()}
	for c := call.OK; c.Valid(); c++ {
		calls := t.Calls(c)
		m.Calls += calls
		m.Attempts += t.Attempts(c)
		if c == call.OK || c == call.ClientFault {
			m.OK += calls
		}
	}
	for _, c := range holdfast.Causes() {
		if n := t.Refusals(c); n > 0 {
			if m.Causes == nil {
				m.Causes = map[string]uint64{}
			}
			m.Causes[c.String()] = n
			m.Refused += n
		}
		m.Denied += t.Denied(c)
	}
	return m
}
