package keyed

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/holdfast-go/holdfast/internal/mono"
)

// TestB13_TheRegistryAgainstAModel makes random uses, changes of idleness and
// waits, and knows of each key its value, its last use and whether it is idle.
// The bounds are small, so that a search keeps one victim and the order of
// eviction is exact.
func TestB13_TheRegistryAgainstAModel(t *testing.T) {
	type known struct {
		v    *thing
		used int64 // tick
	}
	rapid.Check(t, func(t *rapid.T) {
		most := rapid.IntRange(1, 12).Draw(t, "Max")
		held := map[string]*known{}
		searched := int64(-1) // tick of the last search, if it found one victim or none
		var r *Registry[*thing]
		now := mono.Now()
		tick := func() int64 { return r.tick(now) }
		mayGo := func(k *known) bool { return !k.v.busy.Load() && tick()-k.used > graceTicks }
		r = New(Options[*thing]{
			Max:  most,
			New:  func(key string) *thing { return &thing{key: key} },
			Idle: func(v *thing) bool { return !v.busy.Load() },
			Evicted: func(key string, v *thing) {
				gone := held[key]
				require.Same(t, gone.v, v)
				require.True(t, mayGo(gone), "busy, or used a moment ago")
				delete(held, key)
				searched = tick()
				for _, other := range held {
					require.False(t, mayGo(other) && other.used < gone.used, "not the least recently used")
					if mayGo(other) {
						searched = -1
					}
				}
			},
		})
		now = now.Add(time.Millisecond)
		keys := rapid.Custom(func(t *rapid.T) string { return fmt.Sprint("k", rapid.IntRange(0, 2*most).Draw(t, "n")) })
		evictions := uint64(0)
		t.Repeat(map[string]func(*rapid.T){
			"use": func(t *rapid.T) {
				key := keys.Draw(t, "key")
				room := len(held) < most
				for _, k := range held {
					room = room || mayGo(k)
				}
				before := held[key]
				v := r.For(key, now)
				switch {
				case before != nil:
					require.Same(t, before.v, v)
					before.used = tick()
				case v.key == "overflow":
					require.False(t, room && searched < tick(), "overflow although there was room")
					searched = tick()
				default:
					require.Equal(t, key, v.key)
					require.True(t, room)
					held[key] = &known{v, tick()}
				}
			},
			"busy": func(t *rapid.T) {
				if k := held[keys.Draw(t, "key")]; k != nil {
					k.v.busy.Store(!k.v.busy.Load())
				}
			},
			"wait": func(t *rapid.T) {
				now = now.Add(time.Duration(rapid.IntRange(0, 5_000).Draw(t, "ms")) * time.Millisecond)
			},
			"": func(t *rapid.T) {
				require.LessOrEqual(t, len(held), most)
				require.Equal(t, len(held), r.Len())
				require.GreaterOrEqual(t, r.Evictions(), evictions)
				evictions = r.Evictions()
				n := 0
				for key, v := range r.All() {
					if key != "overflow" {
						require.Same(t, held[key].v, v)
						n++
					}
				}
				require.Equal(t, len(held), n)
			},
		})
	})
}
