package main

import (
	"context"
	"slices"
)

// outcome is all that the program measures.
type outcome struct {
	seeds                       int
	article, kit, nested, fleet []result
	late, naive                 lateSuccess
}

// experiment runs everything.
func experiment(ctx context.Context, seeds int, told func(done, all int)) (*outcome, error) {
	e := &outcome{seeds: seeds, late: kitsLateSuccess(), naive: naiveLateSuccess()}
	parts := []struct {
		rows []row
		into *[]result
	}{{articleRows(), &e.article}, {kitRows(), &e.kit}, {nestedRows(), &e.nested}, {fleetRows(fleetSizes), &e.fleet}}
	var rows []row
	for _, p := range parts {
		rows = append(rows, p.rows...)
	}
	results, err := runAll(ctx, rows, seeds, told)
	if err != nil {
		return nil, err
	}
	for _, p := range parts {
		*p.into, results = results[:len(p.rows):len(p.rows)], results[len(p.rows):]
	}
	return e, nil
}

// all returns every row.
func (e *outcome) all() []result {
	late := []result{e.late.result("late success, kit"), e.naive.result("late success, naive")}
	return slices.Concat(e.article, e.kit, e.nested, late, e.fleet)
}

// named returns a row by its name.
func (e *outcome) named(name string) *result {
	all := e.all()
	i := slices.IndexFunc(all, func(r result) bool { return r.name == name })
	return &all[i]
}
