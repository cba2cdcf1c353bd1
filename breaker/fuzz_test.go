package breaker

import (
	"math/rand/v2"
	"testing"

	"pgregory.net/rapid"
)

// FuzzOperations is TestModel with the fuzzer to draw the sequences of operations:
// it looks at which of them reach new code.
func FuzzOperations(f *testing.F) {
	for seed := range byte(16) {
		stream := make([]byte, 4<<10) // some 30 operations
		_, _ = rand.NewChaCha8([32]byte{seed}).Read(stream)
		f.Add(stream)
	}
	f.Fuzz(rapid.MakeFuzz(func(t *rapid.T) { newDuel(t).run() }))
}
