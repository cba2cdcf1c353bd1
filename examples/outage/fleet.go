package main

import (
	"fmt"

	"github.com/holdfast-go/holdfast/examples/outage/sim"
)

// fleetSizes are the numbers of callers, and the seeds for each: a caller gets 50 A
// a second whatever their number, and a thousand of them take their time.
var fleetSizes = []struct{ callers, seeds int }{{1, 200}, {10, 20}, {100, 5}, {1000, 1}}

// fleetWays are how the callers of a fleet keep their breakers.
var fleetWays = []string{"alone"}

// fleetRows are fleets of callers with [Policy], each with a breaker of its own.
func fleetRows() []row {
	var rows []row
	for _, size := range fleetSizes {
		setup := silence()
		setup.Callers, setup.B = size.callers, 0
		setup.Lasts = to + sim.After
		rows = append(rows, row{
			name: fmt.Sprintf("%d alone", size.callers), setup: setup,
			client: sim.Client{Policy: inherit(Policy())}, seeds: size.seeds,
		})
	}
	return rows
}
