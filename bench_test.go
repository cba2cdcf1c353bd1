package holdfast_test

import (
	"context"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/call"
	"github.com/holdfast-go/holdfast/retry"
	"github.com/holdfast-go/holdfast/timeout"
)

// ballast keeps the collector out of benchmarks that allocate.
var ballast = make([]byte, 64<<20)

// The whole stack around a call that does nothing, beside what it cannot be
// cheaper than.
func BenchmarkDo(b *testing.B) {
	ballast[0] = 1
	noop := func(context.Context) (int, error) { return 1, nil }
	once := call.Info{Target: "db", Method: "insert"}
	sooner, cancel := context.WithTimeout(context.Background(), time.Hour)
	defer cancel()

	for _, bc := range []struct {
		name   string
		ctx    context.Context
		policy holdfast.Policy
		info   call.Info
	}{
		{"NoLimitOnce", context.Background(), holdfast.Policy{Timeout: timeout.Off(), Retry: retry.Off()}, once},
		{"NoLimitRead", context.Background(), holdfast.Policy{Timeout: timeout.Off()}, read},
		{"CallerSoonerOnce", sooner, holdfast.Policy{Timeout: &timeout.Limits{Total: 2 * time.Hour}, Retry: retry.Off()}, once},
		{"CallerSoonerRead", sooner, holdfast.Policy{Timeout: &timeout.Limits{Total: 2 * time.Hour}}, read},
		{"OwnLimitOnce", context.Background(), holdfast.Policy{Retry: retry.Off()}, once},
		{"OwnLimitRead", context.Background(), holdfast.Policy{}, read},
	} {
		k, err := holdfast.New(holdfast.Config{Default: bc.policy})
		if err != nil {
			b.Fatal(err)
		}
		b.Run(bc.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				_, _ = holdfast.Do(bc.ctx, k, bc.info, noop)
			}
		})
		b.Run(bc.name+"Parallel", func(b *testing.B) {
			b.ReportAllocs()
			b.RunParallel(func(pb *testing.PB) {
				for pb.Next() {
					_, _ = holdfast.Do(bc.ctx, k, bc.info, noop)
				}
			})
		})
	}
	b.Run("BareCall", func(b *testing.B) {
		for b.Loop() {
			_, _ = noop(context.Background())
		}
	})
	b.Run("BareWithTimeout", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
			_, _ = noop(ctx)
			cancel()
		}
	})
}
