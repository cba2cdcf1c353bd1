package main

import (
	"encoding/json"
	"io"
)

// jsonRow is a row as -json prints it. A range is null where no seed had such a
// figure, such as the moment of an opening without a breaker.
type jsonRow struct {
	Name        string       `json:"name"`
	Downstream  *span        `json:"downstream"`
	BServed     *span        `json:"b_served"` // share of the B that arrived in the outage
	AOK         *span        `json:"a_ok"`
	AFailed     *span        `json:"a_failed"`
	AFastFail   *span        `json:"a_fast_fail"`
	ARejected   *span        `json:"a_rejected"`
	FirstOpen   *span        `json:"first_open_s"`
	LastClose   *span        `json:"last_close_s"`
	Transitions *span        `json:"transitions"`
	Article     *jsonArticle `json:"article,omitempty"`
	Inside      *bool        `json:"inside,omitempty"` // every figure of the article's lies in its range

	// Of the fleets alone: they have fewer seeds than the rest.
	Seeds       int   `json:"fleet_seeds,omitempty"`
	Probes      *span `json:"probes_per_s,omitempty"`       // in the outage
	ProbesAfter *span `json:"probes_per_s_after,omitempty"` // in the 10 s after it
}

// jsonArticle is a row of the article's.
type jsonArticle struct {
	Downstream  int      `json:"downstream"`
	BServed     float64  `json:"b_served"`
	AOK         int      `json:"a_ok"`
	AFailed     int      `json:"a_failed"`
	AFastFail   int      `json:"a_fast_fail"`
	ARejected   int      `json:"a_rejected"`
	FirstOpen   *float64 `json:"first_open_s"`
	LastClose   *float64 `json:"last_close_s"`
	Transitions int      `json:"transitions"`
}

func writeJSON(w io.Writer, seeds int, results []result) error {
	rows := make([]jsonRow, len(results))
	for i, r := range results {
		rows[i] = jsonRow{
			Name: r.name, Downstream: r.downstream, BServed: r.bServed, AOK: r.aOK, AFailed: r.aFailed,
			AFastFail: r.aFastFail, ARejected: r.aRejected,
			FirstOpen: r.firstOpen, LastClose: r.lastClose, Transitions: r.transitions,
		}
		if r.setup.Callers > 0 {
			rows[i].Seeds, rows[i].Probes, rows[i].ProbesAfter = r.seeds, r.probes, r.probesAfter
		}
		if p := r.article; p != nil {
			inside := r.inside(p)
			rows[i].Article, rows[i].Inside = p.json(), &inside
		}
	}
	out := json.NewEncoder(w)
	out.SetIndent("", "  ")
	return out.Encode(struct {
		Seeds int       `json:"seeds"`
		Rows  []jsonRow `json:"rows"`
	}{seeds, rows})
}

func (p *published) json() *jsonArticle {
	a := &jsonArticle{
		Downstream: p.downstream, BServed: p.share(), AOK: p.aOK, AFailed: p.aFailed,
		AFastFail: p.aFastFail, ARejected: p.aRejected, Transitions: p.transitions,
	}
	if p.transitions > 0 {
		a.FirstOpen, a.LastClose = &p.firstOpen, &p.lastClose
	}
	return a
}

// share returns the share of B served.
func (p *published) share() float64 { return round(float64(p.bServed) / publishedB) }
