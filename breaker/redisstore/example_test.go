package redisstore_test

import (
	"context"
	"fmt"
	"log"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/breaker"
	"github.com/holdfast-go/holdfast/breaker/redisstore"
	"github.com/holdfast-go/holdfast/call"
	"github.com/holdfast-go/holdfast/retry"
)

// Two workers share what they know of a dependency. The first finds out that it is
// down; the second is told, and calls it no more.
func ExampleNew() {
	server, err := miniredis.Run() // stands for the Redis or Valkey that you have
	if err != nil {
		log.Fatal(err)
	}
	defer server.Close()
	worker := func() *holdfast.Kit {
		client := redis.NewClient(&redis.Options{Addr: server.Addr(), ContextTimeoutEnabled: true})
		store, err := redisstore.New(client, redisstore.Options{})
		if err != nil {
			log.Fatal(err)
		}
		kit, err := holdfast.New(holdfast.Config{
			Name:    "catalog",
			Default: holdfast.Policy{Retry: retry.Off(), Breaker: &breaker.Config{Consecutive: 3}},
			Shared:  &breaker.Sharing{Store: store, Push: true},
		})
		if err != nil {
			log.Fatal(err)
		}
		return kit
	}
	get := func(kit *holdfast.Kit, answer error) error {
		_, err := holdfast.Do(context.Background(), kit, call.Info{Target: "db", Method: "select", Safety: call.ReadOnly},
			func(context.Context) (int, error) { return 0, answer })
		return err
	}
	first, second := worker(), worker()
	fmt.Println("second:", get(second, nil))
	for range 3 {
		_ = get(first, fmt.Errorf("the dependency is down"))
	}
	fmt.Println("first:", get(first, nil))
	for get(second, nil) == nil {
		time.Sleep(time.Millisecond) // the news is on its way
	}
	fmt.Println("second:", get(second, nil))
	// Output:
	// second: <nil>
	// first: breaker: db is open
	// second: breaker: db is open
}
