package fallback_test

import (
	"context"
	"errors"
	"fmt"
	"log"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/call"
	"github.com/holdfast-go/holdfast/fallback"
	"github.com/holdfast-go/holdfast/retry"
)

// A read that has failed is answered; a write gets its error.
func ExamplePolicy() {
	kit, err := holdfast.New(holdfast.Config{
		Default: holdfast.Policy{
			Retry: retry.Off(),
			Fallback: &fallback.Policy{Answer: func(_ context.Context, f fallback.Failure) (any, error) {
				return "nothing known, since the call was " + f.Class.String(), nil
			}},
		},
	})
	if err != nil {
		log.Fatal(err)
	}
	down := func(context.Context) (string, error) { return "", errors.New("the database is down") }
	for _, info := range []call.Info{
		{Target: "db", Method: "select", Safety: call.ReadOnly},
		{Target: "db", Method: "insert", Safety: call.Unsafe},
	} {
		answer, err := holdfast.Do(context.Background(), kit, info, down)
		fmt.Printf("%s: %q, %v\n", info.Method, answer, err)
	}
	// Output:
	// select: "nothing known, since the call was server_fault", <nil>
	// insert: "", the database is down
}
