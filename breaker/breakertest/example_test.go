package breakertest_test

import (
	"context"
	"fmt"
	"log"
	"time"

	"github.com/holdfast-go/holdfast/breaker"
	"github.com/holdfast-go/holdfast/breaker/breakertest"
)

// A store in memory stands for the server in tests of code that shares breakers: here
// of two workers, of which one closes a dependency off for both.
func ExampleNewMemory() {
	store := breakertest.NewMemory()
	worker := func(name string) (*breaker.Fleet, *breaker.Breaker) {
		fleet, err := breaker.Join(breaker.Sharing{Store: store, Worker: name, Push: true})
		if err != nil {
			log.Fatal(err)
		}
		b, err := fleet.Breaker("db", breaker.Config{})
		if err != nil {
			log.Fatal(err)
		}
		return fleet, b
	}
	first, _ := worker("first")
	_, db := worker("second")
	call := func() error {
		ticket, err := db.Allow()
		if err == nil {
			ticket.Done(breaker.Outcome{Verdict: breaker.Success})
		}
		return err
	}
	fmt.Println(call())
	if err := first.ForceOpen(context.Background(), "db", "it moves"); err != nil {
		log.Fatal(err)
	}
	for call() == nil {
		time.Sleep(time.Millisecond) // the news is on its way
	}
	fmt.Println(call())
	// Output:
	// <nil>
	// breaker: db is forced open: it moves
}
