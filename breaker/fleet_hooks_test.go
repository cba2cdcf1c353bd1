package breaker_test

import (
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-go/holdfast/breaker"
	"github.com/holdfast-go/holdfast/breaker/breakertest"
)

// B12: a hook that ends the call which is about to ask for the lock of a probe
// keeps nobody else from asking.
func TestB12_AHookThatEndsACallBeforeItAsks(t *testing.T) {
	for name, end := range map[string]func(){"panic": func() { panic("a hook") }, "Goexit": runtime.Goexit} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, store *breakertest.Memory) {
				a := join(t, store, "a", shared())
				a.fails()
				use(9*time.Second, a)
				time.Sleep(2 * time.Second)
				c := shared()
				c.LocalOnly = true
				b := join(t, store, "b", c)
				b.state(breaker.Closed)

				// By another Config it joins the others, and is open at once. That is
				// told by whoever comes first: the next call, before it asks.
				c.LocalOnly = false
				ends := true
				c.Hooks.Transition = func(breaker.Transition) {
					if ends {
						ends = false
						end()
					}
				}
				tell := b.group.Apply(c)
				gone := make(chan bool)
				go func() {
					defer close(gone)
					defer func() { recover() }()
					_, _ = b.b().Allow()
					t.Error("the hook has not ended the call")
				}()
				<-gone
				tell()
				require.True(t, b.b().WouldAdmit())
				done(b.probe(), breaker.Success)
				use(time.Second, a, b)
				b.state(breaker.Closed)
				a.state(breaker.Closed)
			})
		})
	}
}

// B12: a hook that ends what told it keeps nothing from the others: neither from
// another breaker of the key, nor from those of the keys that are read with it.
func TestB12_AHookThatEndsADelivery(t *testing.T) {
	for name, end := range map[string]func(){"panic": func() { panic("a hook") }, "Goexit": runtime.Goexit} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, store *breakertest.Memory) {
				a := join(t, store, "a", shared())
				keys := []string{"one", "two", "three"}
				b := join(t, store, "b", shared())
				more, err := b.fleet.Group(shared(), 0)
				require.NoError(t, err)
				for _, key := range keys {
					require.NoError(t, a.fleet.ForceOpen(t.Context(), key, ""))
					b.group.For(key)
					more.For(key)
				}
				b.moved = func(breaker.Transition) { end() }
				_, _ = b.b().Allow() // it is in use, and reads
				time.Sleep(3 * time.Second)
				for _, key := range keys {
					require.Equal(t, breaker.ForcedOpen, b.group.For(key).State(), key)
					require.Equal(t, breaker.ForcedOpen, more.For(key).State(), key)
				}
			})
		})
	}
}
