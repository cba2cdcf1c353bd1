package retry_test

import (
	"errors"
	"fmt"
	"time"

	"github.com/holdfast-go/holdfast/call"
	"github.com/holdfast-go/holdfast/retry"
)

func ExamplePolicy_Next() {
	policy := &retry.Policy{Backoff: retry.Backoff{Base: 100 * time.Millisecond}}
	in := retry.Input{
		Attempt: 1,
		Result:  call.Result{Class: call.Unavailable},
		Safety:  call.Idempotent,
		Left:    retry.NoLimit,
		U:       0.5, // a random number
	}
	fmt.Println(policy.Next(in))

	in.Result.RetryAfter = time.Hour
	fmt.Println(policy.Next(in).Reason)

	in.Safety = call.Unsafe
	fmt.Println(policy.Next(in)) // a natural end
	// Output:
	// {true 50ms <nil>}
	// retry: the dependency asked for a longer pause than the policy allows
	// {false 0s <nil>}
}

func ExampleBackoff_Delay() {
	b := retry.Backoff{Base: 100 * time.Millisecond, Factor: 3, Cap: time.Second, Jitter: retry.NoJitter}
	for n := 1; n <= 4; n++ {
		fmt.Println(b.Delay(n, 0, 1))
	}
	// Output:
	// 100ms
	// 300ms
	// 900ms
	// 1s
}

func ExampleNoWait() {
	fmt.Println(retry.NoWait().Delay(5, 0, 1))
	// Output: 0s
}

func ExampleOff() {
	policy := retry.Off()
	fmt.Println(policy.IsOff())
	// Output: true
}

func ExampleStoppedError() {
	last := errors.New("503 Service Unavailable")
	var err error = &retry.StoppedError{Reason: retry.ErrBudget, Attempts: 2, Last: last}
	fmt.Println(err)
	fmt.Println(errors.Is(err, retry.ErrBudget), errors.Is(err, last))
	// Output:
	// retry: stopped after 2 attempts: this client's budget for the target is used up; last failure: 503 Service Unavailable
	// true true
}

func ExampleBucket() {
	bucket, err := retry.NewBucket(retry.Budget{PerSecond: 1e-6, Initial: 1}) // next to no reserve
	if err != nil {
		panic(err)
	}
	policy := &retry.Policy{Backoff: retry.NoWait()}
	failed := retry.Input{
		Attempt: 1, Safety: call.ReadOnly, Result: call.Result{Class: call.Unavailable}, Left: retry.NoLimit, Bucket: bucket, U: 1,
	}
	fmt.Println(policy.Next(failed).Again)
	fmt.Println(policy.Next(failed).Reason)
	for range 5 {
		bucket.Earn() // a fifth of a token for each success
	}
	fmt.Println(policy.Next(failed).Again)
	// Output:
	// true
	// retry: this client's budget for the target is used up
	// true
}
