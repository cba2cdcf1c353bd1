package fallback_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"net/http"

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

// The field may have marks of others, of a CDN say.
func ExampleMarkedBy() {
	header := http.Header{
		fallback.AgeField:         {"50"},
		fallback.CacheStatusField: {"cdn; fwd=miss", "holdfast; hit; ttl=-20; detail=unavailable"},
	}
	if fallback.MarkedBy(header.Values(fallback.CacheStatusField)) {
		fmt.Printf("as of %s s ago", header.Get(fallback.AgeField)) // a computed answer has no age
	}
	// Output: as of 50 s ago
}
