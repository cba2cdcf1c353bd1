package httpmw_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/httpmw"
)

// patterns is a table of n patterns, none of which applies to what another does but for
// one that applies to all.
func patterns(n int) holdfast.Config {
	methods := map[string]holdfast.Policy{"/": {}}
	for i := range n - 1 {
		methods[fmt.Sprintf("GET /r%d/{id}", i)] = holdfast.Policy{}
	}
	return holdfast.Config{Methods: methods}
}

func bindPatterns(tb testing.TB, c holdfast.Config) *holdfast.Kit {
	k, err := holdfast.New(c)
	require.NoError(tb, err)
	_, err = httpmw.New(nil, k)
	require.NoError(tb, err)
	return k
}

// What a table costs grows with its patterns and not with their square: each is read
// once. To explain a method costs no more in a large table than in a small one. Work is
// counted in allocations, for time says little on a busy machine.
func TestALargeTableCostsWhatItsPatternsDo(t *testing.T) {
	few, many := patterns(50), patterns(400)
	work := func(f func()) float64 { return testing.AllocsPerRun(2, f) }
	bind := func(c holdfast.Config) float64 { return work(func() { bindPatterns(t, c) }) }
	require.Less(t, bind(many), 10*bind(few), "8 times as many patterns")

	small, large := bindPatterns(t, few), bindPatterns(t, many)
	update := func(k *holdfast.Kit, c holdfast.Config) float64 {
		return work(func() { require.NoError(t, k.Update(c)) })
	}
	require.Less(t, update(large, many), 10*update(small, few))

	explain := func(k *holdfast.Kit) float64 {
		return work(func() {
			e, err := k.Explain("GET /r7/x")
			require.NoError(t, err)
			require.Equal(t, `Methods["GET /r7/{id}"]`, e.Entry)
		})
	}
	require.InDelta(t, explain(small), explain(large), 5)
}

func BenchmarkBind(b *testing.B) {
	for _, n := range []int{100, 300, 1000} {
		c := patterns(n)
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				bindPatterns(b, c)
			}
		})
	}
}

func BenchmarkExplain(b *testing.B) {
	for _, n := range []int{100, 300, 1000} {
		k := bindPatterns(b, patterns(n))
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			for b.Loop() {
				_, _ = k.Explain("GET /r7/x")
			}
		})
	}
}
