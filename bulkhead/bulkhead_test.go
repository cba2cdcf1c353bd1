package bulkhead

import (
	"context"
	"errors"
	"fmt"
	"math"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

func newBulkhead(t *testing.T, c Config) *Bulkhead {
	t.Helper()
	b, err := New("b", c)
	require.NoError(t, err)
	return b
}

// hold takes n permits and returns what gives them back.
func hold(t *testing.T, b *Bulkhead, n int) (releaseOne func()) {
	t.Helper()
	permits := make([]Permit, n)
	for i := range permits {
		var err error
		permits[i], err = b.Acquire(context.Background())
		require.NoError(t, err)
	}
	return func() {
		permits[0].Release()
		permits = permits[1:]
	}
}

func requireFull(t *testing.T, err error, reason Reason) {
	t.Helper()
	require.ErrorIs(t, err, ErrFull)
	var full *FullError
	require.ErrorAs(t, err, &full)
	require.Equal(t, reason, full.Reason())
	require.Equal(t, "b", full.Key())
}

func TestK1_BeyondTheLimitIsRefused(t *testing.T) {
	b := newBulkhead(t, Config{Limit: 2})
	release := hold(t, b, 2)
	require.Equal(t, 2, b.InUse())
	_, err := b.Acquire(t.Context())
	requireFull(t, err, QueueFull)
	require.EqualError(t, err, `bulkhead: "b" is full`)

	release()
	p, err := b.Acquire(t.Context())
	require.NoError(t, err)
	p.Release()
	release()
	require.True(t, b.Idle())
}

func TestK1_TheQueueIsFirstComeFirstServed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const n = 5
		b := newBulkhead(t, Config{Limit: 1, Queue: n})
		release := hold(t, b, 1)
		var order []int
		enter := func(i int) {
			p, err := b.Acquire(t.Context())
			if err == nil {
				order = append(order, i)
				time.Sleep(time.Millisecond)
				p.Release()
			}
		}
		for i := range n {
			go enter(i)
			synctest.Wait()
			require.Equal(t, i+1, b.Waiting())
		}
		_, err := b.Acquire(t.Context())
		requireFull(t, err, QueueFull)

		release()
		require.Equal(t, 1, b.InUse(), "the permit was handed on, not freed")
		require.Equal(t, n-1, b.Waiting())
		go enter(n) // a newcomer does not pass those who wait
		time.Sleep(time.Second)
		synctest.Wait()
		require.Equal(t, []int{0, 1, 2, 3, 4, 5}, order)
		require.True(t, b.Idle())
	})
}

func TestK1_AWaitEndsWithMaxWaitOrTheContext(t *testing.T) {
	cause := errors.New("the attempt limit")
	for name, tc := range map[string]struct {
		maxWait time.Duration
		ctx     func() (context.Context, context.CancelFunc)
		after   time.Duration
		reason  Reason
		is      []error
	}{
		"MaxWait": {
			maxWait: 10 * time.Millisecond, after: 10 * time.Millisecond, reason: WaitedOut,
			ctx: func() (context.Context, context.CancelFunc) {
				return context.WithTimeout(context.Background(), time.Hour)
			},
		},
		"deadline": {
			after: 20 * time.Millisecond, reason: ContextEnded,
			is: []error{context.DeadlineExceeded, cause},
			ctx: func() (context.Context, context.CancelFunc) {
				return context.WithTimeoutCause(context.Background(), 20*time.Millisecond, cause)
			},
		},
		"deadline before MaxWait": {
			maxWait: time.Second, after: 20 * time.Millisecond, reason: ContextEnded,
			is: []error{context.DeadlineExceeded},
			ctx: func() (context.Context, context.CancelFunc) {
				return context.WithTimeout(context.Background(), 20*time.Millisecond)
			},
		},
		"cancel": {
			after: 30 * time.Millisecond, reason: ContextEnded,
			is: []error{context.Canceled, cause},
			ctx: func() (context.Context, context.CancelFunc) {
				ctx, cancel := context.WithCancelCause(context.Background())
				time.AfterFunc(30*time.Millisecond, func() { cancel(cause) })
				return ctx, func() { cancel(nil) }
			},
		},
		"done before": {
			maxWait: time.Second, reason: ContextEnded, is: []error{context.Canceled},
			ctx: func() (context.Context, context.CancelFunc) {
				ctx, cancel := context.WithCancel(context.Background())
				cancel()
				return ctx, cancel
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := newBulkhead(t, Config{Limit: 1, Queue: 1, MaxWait: tc.maxWait})
				release := hold(t, b, 1)
				ctx, cancel := tc.ctx()
				defer cancel()
				start := time.Now()
				p, err := b.Acquire(ctx)
				require.Equal(t, tc.after, time.Since(start))
				requireFull(t, err, tc.reason)
				for _, target := range tc.is {
					require.ErrorIs(t, err, target)
				}
				if tc.is == nil {
					require.NoError(t, errors.Unwrap(err))
				}
				require.Regexp(t, `^bulkhead: "b" is full, no permit `, err.Error())
				p.Release() // stands for nothing
				require.Equal(t, 1, b.InUse())
				require.Zero(t, b.Waiting())
				release()
				require.True(t, b.Idle())
			})
		})
	}
}

func TestD056_ReleaseCountsOnce(t *testing.T) {
	b := newBulkhead(t, Config{Limit: 3})
	release := hold(t, b, 2)
	p, err := b.Acquire(t.Context())
	require.NoError(t, err)
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for range 100 {
				p.Release()
			}
		})
	}
	wg.Wait()
	require.Equal(t, 2, b.InUse())
	release()
	release()
	require.Zero(t, b.InUse())

	var none Permit
	none.Release()
	require.Zero(t, b.InUse())
}

func TestD058_LimitsAsLargeAsTheyCome(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBulkhead(t, Config{Limit: 1, Queue: math.MaxInt})
		running, most, done := 0, 0, 0
		for range 10 {
			go func() {
				p, err := b.Acquire(t.Context())
				if err == nil {
					running++
					most = max(most, running)
					time.Sleep(time.Millisecond)
					running--
					done++
					p.Release()
				}
			}()
		}
		time.Sleep(time.Second)
		synctest.Wait()
		require.Equal(t, 10, done)
		require.Equal(t, 1, most)
		require.True(t, b.Idle())
	})
	// Anything made in the size of these numbers would end the test.
	b := newBulkhead(t, Config{Limit: math.MaxInt, Queue: math.MaxInt, MaxWait: math.MaxInt64})
	release := hold(t, b, 1000)
	require.Equal(t, 1000, b.InUse())
	for range 1000 {
		release()
	}
	require.True(t, b.Idle())
}

// A wait that a limit cut short is a deadline's, even where the limit had to
// cancel the context to end it.
func TestACancelledContextOfALimitIsADeadline(t *testing.T) {
	b, err := New("b", Config{Limit: 1, Queue: 1})
	require.NoError(t, err)
	held, err := b.Acquire(t.Context())
	require.NoError(t, err)
	defer held.Release()
	for cause, canceled := range map[error]bool{errors.New("gone"): true, fmt.Errorf("limit: %w", context.DeadlineExceeded): false} {
		ctx, cancel := context.WithCancelCause(t.Context())
		cancel(cause)
		_, err = b.Acquire(ctx)
		require.ErrorIs(t, err, ErrFull)
		require.ErrorIs(t, err, cause)
		require.Equal(t, canceled, errors.Is(err, context.Canceled))
	}
}
