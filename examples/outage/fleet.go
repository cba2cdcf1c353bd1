package main

import (
	"fmt"

	"github.com/holdfast-go/holdfast/examples/outage/sim"
)

// fleetA is how many A a second each caller of a fleet gets.
const fleetA = 10

// fleetSizes are the numbers of callers, and the seeds for each: a thousand callers
// take their time.
var fleetSizes = []fleetSize{{1, 100}, {10, 40}, {100, 5}, {1000, 1}}

type fleetSize struct{ callers, seeds int }

// fleetWays are how the callers of a fleet keep their breakers: each its own, or
// sharing what they know.
var fleetWays = []string{"alone", "sharing"}

// fleetRows are fleets of callers with [Policy].
func fleetRows(sizes []fleetSize) []row {
	var rows []row
	for i, way := range fleetWays {
		for _, size := range sizes {
			setup := silence()
			setup.Callers, setup.A, setup.B = size.callers, fleetA, 0
			setup.Lasts = to + sim.Afterwards
			rows = append(rows, row{
				name: fmt.Sprintf("%d %s", size.callers, way), setup: setup,
				client: sim.Client{Policy: inherit(Policy())}, seeds: size.seeds, sharing: i == 1,
			})
		}
	}
	return rows
}
