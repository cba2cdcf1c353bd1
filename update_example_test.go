package holdfast_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/breaker"
	"github.com/holdfast-go/holdfast/call"
	"github.com/holdfast-go/holdfast/retry"
)

// A kit's policies are changed while it runs, and the circuit stays open.
func ExampleKit_Update() {
	policy := holdfast.Policy{
		Retry:   retry.Off(),
		Breaker: &breaker.Config{Consecutive: 3, Cooldown: time.Minute},
	}
	kit, err := holdfast.New(holdfast.Config{Name: "orders", Default: policy})
	if err != nil {
		panic(err)
	}
	query := func() error {
		_, err := holdfast.Do(context.Background(), kit, call.Info{Target: "db"}, func(context.Context) (int, error) {
			return 0, errors.New("connection refused")
		})
		return err
	}
	for range 3 {
		_ = query()
	}

	policy.Breaker.Consecutive = 10
	if err := kit.Update(holdfast.Config{Default: policy}); err != nil {
		panic(err)
	}
	fmt.Println(errors.Is(query(), breaker.ErrOpen))

	policy.Breaker.FailureRate = 50
	fmt.Println(kit.Update(holdfast.Config{Default: policy}))
	// Output:
	// true
	// holdfast: Default.Breaker.FailureRate = 50: must be a share, 0 < r <= 1 (did you mean 0.5?)
}
