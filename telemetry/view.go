package telemetry

import (
	"cmp"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/breaker"
	"github.com/holdfast-go/holdfast/call"
)

// view is what the page shows, and its JSON.
type view struct {
	At       time.Time      `json:"at"`
	Kits     []string       `json:"kits"`
	States   map[string]int `json:"states"` // breakers in each, shown or not
	Breakers []breakerView  `json:"breakers"`
	Hidden   int            `json:"hidden"` // breakers left out, for they are beyond the limit

	Bulkheads []bulkheadView `json:"bulkheads"`
	Idle      int            `json:"idle_bulkheads"` // with no permit out
	Budgets   []budgetView   `json:"budgets"`
	Methods   []methodView   `json:"methods"`
	Policies  []policyView   `json:"policies"`
	Changes   []changeView   `json:"changes"` // the newest first

	Query   string `json:"-"`
	Limit   int    `json:"-"`
	Control bool   `json:"-"` // who looks may act
}

// breakerView is a breaker. Times are in seconds, rates are shares.
type breakerView struct {
	Kit    string   `json:"kit"`
	Name   string   `json:"name"`
	State  string   `json:"state"`
	For    *float64 `json:"for_s,omitempty"` // null if it is not known
	Reason string   `json:"reason,omitempty"`
	Note   string   `json:"note,omitempty"`

	// How long ago the breaker was last closed, and why it no longer is; null and
	// empty if the page was not there.
	CutFor    *float64 `json:"not_closed_for_s,omitempty"`
	CutReason string   `json:"not_closed_reason,omitempty"`

	Cooldown float64 `json:"cooldown_s,omitempty"`
	Left     float64 `json:"left_s,omitempty"`
	Openings int     `json:"openings_in_a_row,omitempty"`
	Admits   float64 `json:"admits"`
	Shadow   bool    `json:"shadow,omitempty"`

	Results     int     `json:"results"`
	Failures    int     `json:"failures"`
	Slow        int     `json:"slow"`
	FailureRate float64 `json:"failure_rate"`
	SlowRate    float64 `json:"slow_rate"`
	Consecutive int     `json:"failures_in_a_row"`
	Unanswered  int     `json:"unanswered"`

	Probes         int `json:"probes"`
	MaxProbes      int `json:"max_probes"`
	ProbeSuccesses int `json:"probe_successes"`
	ProbesToClose  int `json:"probes_to_close"`

	Opens        uint64 `json:"opens"`
	Refused      uint64 `json:"refused"`
	RefusedSince uint64 `json:"refused_since_closed"`

	Window  []partView   `json:"window"`
	PartFor float64      `json:"window_part_s,omitempty"`
	Changes []changeView `json:"changes,omitempty"`

	kit    int
	at     time.Time
	since  time.Time // when the page began to listen
	past   []change  // the newest first
	cut    breaker.Counts
	config breaker.Config
}

type partView struct {
	Results  int `json:"results"`
	Failures int `json:"failures"`
	Slow     int `json:"slow"`
}

type changeView struct {
	At       time.Time `json:"at"`
	Kit      string    `json:"kit"`
	Name     string    `json:"name"`
	From     string    `json:"from"`
	To       string    `json:"to"`
	Reason   string    `json:"reason"`
	Note     string    `json:"note,omitempty"`
	Results  int       `json:"results,omitempty"`
	Failures int       `json:"failures,omitempty"`
	ago      time.Duration
}

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

// found is a breaker before it is known whether it is shown.
type found struct {
	b      *breaker.Breaker
	kit    int
	key    string
	state  breaker.State
	counts breaker.Counts
}

// breakerID names a breaker of one of the page's kits.
type breakerID struct {
	kit int
	key string
}

// trouble ranks a breaker: the less, the more does it want to be seen.
func (f *found) trouble() int {
	switch f.state {
	case breaker.Open:
		return 0
	case breaker.HalfOpen:
		return 1
	case breaker.ForcedOpen:
		return 2
	case breaker.Disabled:
		return 3
	}
	if f.counts.Failures+f.counts.Slow > 0 {
		return 4
	}
	return 5
}

func (f *found) badShare() float64 {
	return share(f.counts.Failures+f.counts.Slow, f.counts.Results)
}

func share(part, whole int) float64 {
	if whole == 0 {
		return 0
	}
	return float64(part) / float64(whole)
}

// look gathers what the page shows: at most limit of the breakers whose name or
// kit holds query, those in trouble first.
func (p *Operations) look(query string, limit int) *view {
	now := time.Now()
	v := &view{
		At: now, States: map[string]int{}, Query: query, Limit: limit,
		Breakers: []breakerView{}, Bulkheads: []bulkheadView{}, Budgets: []budgetView{}, Methods: []methodView{}, Changes: []changeView{},
	}
	for _, state := range states {
		v.States[state.String()] = 0
	}
	changes := p.history.all()
	past := map[breakerID][]change{}
	for _, c := range changes {
		id := breakerID{c.kit, c.Key}
		past[id] = append(past[id], c)
	}
	var all []found
	for i, k := range p.kits {
		v.Kits = append(v.Kits, k.Name())
		for key, b := range k.Breakers() {
			f := found{b: b, kit: i, key: redact(key), state: b.State()}
			v.States[f.state.String()]++
			if matches(query, f.key, k.Name()) {
				f.counts = b.Counts()
				all = append(all, f)
			}
		}
	}
	slices.SortFunc(all, func(a, b found) int {
		return cmp.Or(a.trouble()-b.trouble(), cmp.Compare(b.badShare(), a.badShare()), strings.Compare(a.key, b.key), a.kit-b.kit)
	})
	if v.Hidden = max(0, len(all)-limit); v.Hidden > 0 {
		all = all[:limit]
	}
	for _, f := range all {
		v.Breakers = append(v.Breakers, p.breaker(f, past[breakerID{f.kit, f.b.Name()}], now))
	}
	for i, k := range p.kits {
		p.lookAtTheRest(v, i, k)
	}
	slices.SortStableFunc(v.Bulkheads, func(a, b bulkheadView) int { return cmp.Compare(b.Use(), a.Use()) })
	slices.SortStableFunc(v.Budgets, func(a, b budgetView) int { return cmp.Compare(a.Left(), b.Left()) })
	slices.SortStableFunc(v.Methods, func(a, b methodView) int { return cmp.Compare(b.Calls, a.Calls) })
	v.Bulkheads, v.Budgets, v.Methods = most(v.Bulkheads, limit), most(v.Budgets, limit), most(v.Methods, limit)
	for _, c := range most(changes, 20) {
		v.Changes = append(v.Changes, p.change(c, now))
	}
	return v
}

func matches(query, key, kit string) bool {
	return query == "" || strings.Contains(strings.ToLower(key), query) || strings.Contains(strings.ToLower(kit), query)
}

func most[T any](list []T, n int) []T { return list[:min(len(list), n)] }

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

func (p *Operations) change(c change, now time.Time) changeView {
	return changeView{
		At: c.at, Kit: p.kits[c.kit].Name(), Name: redact(c.Key), From: c.From.String(), To: c.To.String(),
		Reason: c.Reason.String(), Note: c.Note, Results: c.Counts.Results, Failures: c.Counts.Failures, ago: now.Sub(c.at),
	}
}

// breaker shows one breaker with its past changes, the newest first.
func (p *Operations) breaker(f found, past []change, now time.Time) breakerView {
	i := f.b.Inspect()
	c := i.Counts
	v := breakerView{
		Kit: p.kits[f.kit].Name(), Name: f.key, State: i.State.String(), Note: i.Note,
		Cooldown: i.Cooldown.Seconds(), Left: i.Left.Seconds(), Openings: i.Openings, Admits: i.Admits, Shadow: i.Config.Shadow,
		Results: c.Results, Failures: c.Failures, Slow: c.Slow,
		FailureRate: share(c.Failures, c.Results), SlowRate: share(c.Slow, c.Results),
		Consecutive: c.Consecutive, Unanswered: c.Unanswered,
		Probes: c.Probes, MaxProbes: i.Config.Probes, ProbeSuccesses: c.ProbeSuccesses, ProbesToClose: i.Config.ProbeSuccesses,
		Opens: c.Totals.Opens, Refused: refused(c.Totals), PartFor: i.PartTime.Seconds(),
		Window: []partView{}, kit: f.kit, at: now, since: p.since, past: past, config: i.Config,
	}
	if i.Reason != 0 {
		v.Reason = i.Reason.String()
	}
	for _, part := range i.Window {
		v.Window = append(v.Window, partView(part))
	}
	known, lasted := i.Known, i.For
	for _, change := range past {
		if len(v.Changes) == 0 && change.To == i.State && !known {
			known, lasted = true, now.Sub(change.at)
		}
		if len(v.Changes) < 8 {
			v.Changes = append(v.Changes, p.change(change, now))
		}
		if v.CutFor == nil && change.From == breaker.Closed && i.State != breaker.Closed {
			v.CutFor, v.CutReason = rounded(now.Sub(change.at)), change.Reason.String()
			v.RefusedSince, v.cut = v.Refused-refused(change.Counts.Totals), change.Counts
		}
	}
	if known {
		v.For = rounded(lasted)
	}
	return v
}

// rounded returns a duration in seconds, to the millisecond.
func rounded(d time.Duration) *float64 {
	seconds := math.Round(d.Seconds()*1000) / 1000
	return &seconds
}

func refused(t breaker.Totals) uint64 {
	return t.RefusedOpen + t.RefusedHalfOpen + t.RefusedForced + t.RefusedRamp
}
