package breakertest_test

import (
	"testing"
	"testing/synctest"

	"github.com/holdfast-go/holdfast/breaker"
	"github.com/holdfast-go/holdfast/breaker/breakertest"
)

func TestMemoryConforms(t *testing.T) {
	breakertest.Run(t, breakertest.Harness{
		New:    func(*testing.T) breaker.Store { return breakertest.NewMemory() },
		Around: synctest.Test,
	})
}
