package timeout_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/call"
	"github.com/holdfast-go/holdfast/timeout"
)

// The error tells whose limit it was. Both are deadlines to a program that does
// not care.
func Example() {
	kit, err := holdfast.New(holdfast.Config{Default: holdfast.Policy{
		Timeout: &timeout.Limits{Attempt: 20 * time.Millisecond},
	}})
	if err != nil {
		panic(err)
	}
	silent := func(ctx context.Context) (int, error) {
		<-ctx.Done()
		return 0, ctx.Err()
	}
	tell := func(ctx context.Context) {
		_, err := holdfast.Do(ctx, kit, call.Info{Target: "db", Method: "count"}, silent)
		fmt.Println("the kit's:", errors.Is(err, timeout.ErrExceeded), "- a deadline:", errors.Is(err, context.DeadlineExceeded))
	}

	tell(context.Background())
	ctx, cancel := context.WithTimeout(context.Background(), time.Millisecond)
	defer cancel()
	tell(ctx)
	// Output:
	// the kit's: true - a deadline: true
	// the kit's: false - a deadline: true
}
