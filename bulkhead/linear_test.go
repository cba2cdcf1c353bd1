package bulkhead

import (
	"context"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"
	"github.com/stretchr/testify/require"
)

// TestK1_WithoutAQueueItIsACounter holds histories of concurrent acquires and
// releases against a counter: there must be an order of the operations in which
// no permit goes beyond the limit and none is refused while one is free.
func TestK1_WithoutAQueueItIsACounter(t *testing.T) {
	const limit, clients, rounds, histories = 2, 4, 30, 40
	const acquire, release = 0, 1
	model := porcupine.Model{
		Init: func() any { return 0 },
		Step: func(state, op, output any) (bool, any) {
			inUse, got := state.(int), output.(bool)
			switch {
			case op == release:
				return inUse > 0, inUse - 1
			case got:
				return inUse < limit, inUse + 1
			default:
				return inUse == limit, inUse
			}
		},
	}
	refused := 0
	for range histories {
		b := newBulkhead(t, Config{Limit: limit})
		var stamp atomic.Int64
		logs := make([][]porcupine.Operation, clients)
		var wg sync.WaitGroup
		for c := range clients {
			wg.Go(func() {
				for range rounds {
					start := stamp.Add(1)
					p, err := b.Acquire(context.Background())
					logs[c] = append(logs[c], porcupine.Operation{
						ClientId: c, Input: acquire, Output: err == nil, Call: start, Return: stamp.Add(1),
					})
					runtime.Gosched()
					if err == nil {
						start = stamp.Add(1)
						p.Release()
						logs[c] = append(logs[c], porcupine.Operation{
							ClientId: c, Input: release, Output: true, Call: start, Return: stamp.Add(1),
						})
					}
				}
			})
		}
		wg.Wait()
		var history []porcupine.Operation
		for _, log := range logs {
			for _, op := range log {
				if op.Output == false {
					refused++
				}
				history = append(history, op)
			}
		}
		require.Equal(t, porcupine.Ok, porcupine.CheckOperationsTimeout(model, history, 10*time.Second))
	}
	require.Positive(t, refused)
}
