package bulkhead_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/holdfast-go/holdfast/bulkhead"
)

func Example() {
	b, err := bulkhead.New("https://api.example.com:443", bulkhead.Config{Limit: 1})
	if err != nil {
		fmt.Println(err)
		return
	}

	first, err := b.Acquire(context.Background())
	fmt.Println(err, b.InUse())

	_, err = b.Acquire(context.Background())
	fmt.Println(errors.Is(err, bulkhead.ErrFull))
	fmt.Println(err)

	first.Release()
	first.Release() // counts once
	fmt.Println(b.InUse())
	// Output:
	// <nil> 1
	// true
	// bulkhead: "https://api.example.com:443" is full
	// 0
}

func ExampleBulkhead_Acquire_queue() {
	b, err := bulkhead.New("db", bulkhead.Config{Limit: 1, Queue: 10, MaxWait: time.Millisecond})
	if err != nil {
		fmt.Println(err)
		return
	}
	p, _ := b.Acquire(context.Background())
	defer p.Release()

	_, err = b.Acquire(context.Background())
	var full *bulkhead.FullError
	if errors.As(err, &full) {
		fmt.Println(full.Key(), full.Reason())
	}
	// Output: db waited_out
}

func ExampleNew_badConfig() {
	_, err := bulkhead.New("db", bulkhead.Config{Queue: -1})
	fmt.Println(err)
	// Output:
	// bulkhead: bad configuration
	// 	Limit = 0: must be at least 1; bulkhead.Off() limits nothing
	// 	Queue = -1: must not be negative; 0 is no queue
}

func ExamplePermit_Book() {
	b, err := bulkhead.New("db", bulkhead.Config{Limit: 8, Adaptive: bulkhead.Adaptive{Min: 1}})
	if err != nil {
		fmt.Println(err)
		return
	}
	attempt := func(failed bool) {
		p, err := b.Acquire(context.Background())
		if err != nil {
			fmt.Println(err)
			return
		}
		defer p.Release()
		p.Book(failed)
	}
	attempt(true)
	attempt(true)
	fmt.Println(b.Limit())
	for range 5 { // two windows: the limit is 2, then 3
		attempt(false)
	}
	fmt.Println(b.Limit())
	// Output:
	// 2
	// 4
}

func ExampleAcquireBoth() {
	config := bulkhead.Config{Limit: 10, Scope: bulkhead.TwoLevel, MethodLimit: 1}
	method, _ := bulkhead.New("db|report", config.ForMethod())
	target, _ := bulkhead.New("db", config)

	p, err := bulkhead.AcquireBoth(context.Background(), method, target)
	fmt.Println(err, target.InUse())
	_, err = bulkhead.AcquireBoth(context.Background(), method, target)
	fmt.Println(err)
	p.Release()
	fmt.Println(target.InUse())
	// Output:
	// <nil> 1
	// bulkhead: "db|report" is full
	// 0
}
