package breaker

import (
	"testing"

	"pgregory.net/rapid"
)

// FuzzOperations is TestModel with the fuzzer to draw the sequences of operations:
// it looks at which of them reach new code.
func FuzzOperations(f *testing.F) {
	f.Fuzz(rapid.MakeFuzz(func(t *rapid.T) { newDuel(t).run() }))
}
