package telemetry

import (
	"cmp"
	"slices"
	"strings"
	"time"
)

// view is what the page shows, and its JSON.
type view struct {
	At       time.Time      `json:"at"`
	Kits     []string       `json:"kits"`
	States   map[string]int `json:"states"`  // breakers in each, shown or not
	Shadows  map[string]int `json:"shadows"` // those that refuse nothing, apart
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
	Shadow   bool      `json:"shadow,omitempty"` // of a breaker that refuses nothing
	ago      time.Duration
}

// breakerID names a breaker of one of the page's kits.
type breakerID struct {
	kit int
	key string
}

// look gathers what the page shows: at most limit of the breakers whose name or
// kit holds query, those in trouble first.
func (p *Operations) look(query string, limit int) *view {
	now := time.Now()
	v := &view{
		At: now, States: map[string]int{}, Shadows: map[string]int{}, Query: query, Limit: limit,
		Breakers: []breakerView{}, Bulkheads: []bulkheadView{}, Budgets: []budgetView{}, Methods: []methodView{}, Changes: []changeView{},
	}
	for _, state := range states {
		v.States[state.String()], v.Shadows[state.String()] = 0, 0
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
			f := found{b: b, kit: i, key: redact(key), state: b.State(), shadow: b.Shadow()}
			if f.shadow {
				v.Shadows[f.state.String()]++
			} else {
				v.States[f.state.String()]++
			}
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

func (p *Operations) change(c change, now time.Time) changeView {
	return changeView{
		At: c.at, Kit: p.kits[c.kit].Name(), Name: redact(c.Key), From: c.From.String(), To: c.To.String(),
		Reason: c.Reason.String(), Note: c.Note, Results: c.Counts.Results, Failures: c.Counts.Failures, Shadow: c.Shadow, ago: now.Sub(c.at),
	}
}
