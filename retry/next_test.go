package retry

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-go/holdfast/call"
	"github.com/holdfast-go/holdfast/internal/mono"
)

var errOpen = errors.New("breaker: open")

// TestR2_TheRuleOverAllItsInputs runs Next over the whole product of what it
// looks at. want is the rule, in one place and in other words than Next's:
// which ends are natural, and then in which order the reasons to stop are
// asked.
//
// The reasons are R1 (attempts), R2 (what is never repeated), R4 (a pause
// beyond the cap), R5 (time), R6 (budget), R7 (the breaker's peek), R8
// (nesting); R12 is that a natural end has none.
func TestR2_TheRuleOverAllItsInputs(t *testing.T) {
	const (
		attempts = 3
		base     = 100 * time.Millisecond
		limit    = time.Minute
	)
	policies := map[string]*Policy{
		"on":   {MaxAttempts: attempts, Backoff: Backoff{Base: base, Jitter: NoJitter}, RetryAfterCap: limit},
		"one":  {MaxAttempts: 1, Backoff: Backoff{Base: base, Jitter: NoJitter}, RetryAfterCap: limit},
		"off":  Off(),
		"none": {MaxAttempts: Unlimited, Backoff: NoWait()},
	}
	bools := []bool{false, true}
	wait := func(policy string, attempt int, pause time.Duration) time.Duration {
		switch {
		case policy == "none":
			return pause // U is so small that the spread is less than a nanosecond
		case attempt == 1:
			return max(base, pause)
		default:
			return max(2*base, pause)
		}
	}
	now, cases := mono.Now(), 0
	bucket := NewBucketAt(Budget{Cap: 1}, now)
	oneToken, noToken := bucket.now.Load().empty.Load(), now.Pack()
	for name, policy := range policies {
		for class := call.Class(0); class <= call.Permanent+1; class++ {
			for safety := call.SafetyUnknown; safety <= call.ReadOnly; safety++ {
				for bits := range 1 << 6 {
					bit := func(n int) bool { return bits>>n&1 == 1 }
					keyed, notSent, noRetry := bit(0), bit(1), bit(2)
					probe, callerDone, nested := bit(3), bit(4), bit(5)
					for _, attempt := range []int{1, 2, 3} {
						for _, pause := range []time.Duration{0, time.Second, limit, limit + 1} {
							for _, left := range []time.Duration{NoLimit, 0, base, 30 * time.Second} {
								for _, refused := range bools {
									for _, empty := range bools {
										bucket.now.Load().empty.Store(oneToken)
										if empty {
											bucket.now.Load().empty.Store(noToken)
										}
										in := Input{
											Attempt: attempt, Safety: safety, Keyed: keyed, Probe: probe,
											Result:     call.Result{Class: class, NotSent: notSent, NoRetry: noRetry, RetryAfter: pause},
											CallerDone: callerDone, Left: left, Nested: nested, Bucket: bucket, U: 1e-12,
										}
										if refused {
											in.Refusal = errOpen
										}
										cases++

										want := Decision{}
										failed := class == call.Throttled || class == call.ServerFault ||
											class == call.Unavailable || class == call.TimedOut
										harmless := safety == call.Idempotent || safety == call.ReadOnly || keyed || notSent
										most := map[string]int{"on": attempts, "one": 1, "off": 0, "none": Unlimited}[name]
										delay := wait(name, attempt, pause)
										switch {
										case !failed, noRetry, !harmless, probe, callerDone, nested, attempt >= most:
										case refused:
											want.Reason = errOpen
										case pause > limit:
											want.Reason = ErrRetryAfter
										case delay >= left:
											want.Reason = ErrNoTime
										case empty:
											want.Reason = ErrBudget
										default:
											want = Decision{Again: true, Delay: delay}
										}
										got := policy.NextAt(in, now)
										if got != want {
											t.Fatalf("policy %s, %+v:\ngot  %+v\nwant %+v", name, in, got, want)
										}
										paid := bucket.TokensAt(now) < 1
										if paid != (empty || want.Again) {
											t.Fatalf("policy %s, %+v: a token is taken for a repeat and for nothing else", name, in)
										}
									}
								}
							}
						}
					}
				}
			}
		}
	}
	require.Greater(t, cases, 1_000_000)
}

// fail is the input after a failed first attempt of a call that may be
// repeated.
func fail(class call.Class) Input {
	return Input{
		Attempt: 1, Safety: call.Idempotent, Left: NoLimit, U: 1,
		Result: call.Result{Class: class, Err: fmt.Errorf("a %v", class)},
	}
}

func TestD028_ARefusalIsNeverRepeated(t *testing.T) {
	now := mono.Now()
	bucket := NewBucketAt(Budget{}, now)
	p := &Policy{MaxAttempts: 5, Backoff: Backoff{Base: time.Second}}
	in := fail(call.Refused)
	in.Bucket = bucket
	in.Result.NotSent = true
	require.Equal(t, Decision{}, p.Next(in))
	require.Equal(t, 10.0, bucket.TokensAt(now), "the budget is untouched")
}

func TestD030_NoTimeIsToldAtOnce(t *testing.T) {
	p := &Policy{Backoff: Backoff{Base: 5 * time.Second, Jitter: NoJitter}}
	in := fail(call.ServerFault)
	in.Left = 290 * time.Millisecond
	d := p.Next(in)
	require.ErrorIs(t, d.Reason, ErrNoTime)
	err := &StoppedError{Reason: d.Reason, Attempts: 1, Last: in.Result.Err}
	require.ErrorIs(t, err, in.Result.Err)
	require.ErrorIs(t, err, ErrNoTime)
}

func TestD031_NothingStartsOnceTheCallerIsDone(t *testing.T) {
	p := &Policy{MaxAttempts: 10, Backoff: NoWait()}
	in := fail(call.TimedOut)
	in.Left = 0
	require.Equal(t, ErrNoTime, p.Next(in).Reason, "the deadline is now")
	in.CallerDone = true
	require.Equal(t, Decision{}, p.Next(in), "a natural end: the caller knows")
}

func TestD032_AnAttemptLimitIsRepeatedTheCallersDeadlineIsNot(t *testing.T) {
	p := &Policy{}
	in := fail(call.TimedOut)
	in.Left = time.Second
	require.True(t, p.Next(in).Again)
	in.CallerDone = true
	require.False(t, p.Next(in).Again)
}

func TestD033_AttemptsCountTheFirst(t *testing.T) {
	// Also R1.
	for _, tc := range []struct{ set, want int }{{0, 3}, {1, 1}, {2, 2}, {3, 3}, {8, 8}, {Unlimited, 5_000}} {
		p := &Policy{MaxAttempts: tc.set, Backoff: NoWait()}
		in := fail(call.ServerFault)
		for in.Attempt < 5_000 && p.Next(in).Again {
			in.Attempt++
		}
		require.Equal(t, tc.want, in.Attempt, "MaxAttempts %d", tc.set)
		in.Attempt, in.Result.NoRetry = 1, true
		require.False(t, p.Next(in).Again, "a verdict of never outranks the number")
	}
	require.EqualError(t, Policy{MaxAttempts: -1}.Check(),
		"retry: MaxAttempts = -1: must be at least 1, or 0 for the default")
}

func TestD038_AnUnsafeCallIsRepeatedOnlyIfNothingWasSentOrItIsKeyed(t *testing.T) {
	p := &Policy{}
	for _, safety := range []call.Safety{call.SafetyUnknown, call.Unsafe} {
		in := fail(call.TimedOut)
		in.Safety = safety
		require.Equal(t, Decision{}, p.Next(in))
		in.Keyed = true
		require.True(t, p.Next(in).Again)
		in = fail(call.Unavailable)
		in.Safety = safety
		require.False(t, p.Next(in).Again)
		in.Result.NotSent = true
		require.True(t, p.Next(in).Again)
	}
}

func TestD039_RetryAfterIsALowerBound(t *testing.T) {
	// Also R4.
	p := &Policy{}
	for _, u := range []float64{1e-9, 0.3, 0.999, 1} {
		in := fail(call.Throttled)
		in.U, in.Result.RetryAfter = u, 3*time.Second
		d := p.Next(in)
		require.True(t, d.Again)
		require.GreaterOrEqual(t, d.Delay, 3*time.Second)
		require.LessOrEqual(t, d.Delay, 3300*time.Millisecond)

		in.Left = 3 * time.Second
		require.Equal(t, ErrNoTime, p.Next(in).Reason)

		in.Left, in.Result.RetryAfter = NoLimit, time.Minute+1
		require.Equal(t, Decision{Reason: ErrRetryAfter}, p.Next(in))
		in.Result.RetryAfter = NoLimit
		require.Equal(t, Decision{Reason: ErrRetryAfter}, p.Next(in))

		in.Result.RetryAfter = -time.Second
		require.LessOrEqual(t, p.Next(in).Delay, 50*time.Millisecond, "nonsense is no pause")
	}
}

func TestD039_APauseIsSpreadToOneSide(t *testing.T) {
	b := Backoff{Base: time.Second}
	seen := map[time.Duration]bool{}
	for i := range 100 {
		u := float64(i+1) / 100
		d := b.delayAfter(30*time.Second, 1, 0, u)
		require.Greater(t, d, 30*time.Second)
		require.LessOrEqual(t, d, 33*time.Second)
		seen[d] = true
	}
	require.Len(t, seen, 100)
	require.Equal(t, 2*time.Second, b.delayAfter(time.Second, 1, 0, 1), "the back-off is longer than a tenth")
	require.Equal(t, 30*time.Second, Backoff{Jitter: NoJitter}.delayAfter(30*time.Second, 1, 0, 1))
	require.Equal(t, time.Minute, Backoff{Jitter: NoJitter, Base: time.Minute}.delayAfter(30*time.Second, 1, 0, 1))
	require.Equal(t, NoLimit, b.delayAfter(NoLimit-1, 1, 0, 1))
}

func TestD040_AStopFromTheDependencyIsFinal(t *testing.T) {
	// Also D045: a response header that forbids the repeat arrives as NoRetry.
	in := fail(call.Unavailable)
	in.Result.NoRetry = true
	in.Result.NotSent = true
	in.Keyed = true
	require.Equal(t, Decision{}, (&Policy{}).Next(in))
}

func TestD044_ANestedCallIsNotRepeated(t *testing.T) {
	in := fail(call.ServerFault)
	in.Nested = true
	require.Equal(t, Decision{}, (&Policy{MaxAttempts: 3}).Next(in))
}

func TestOffSurvivesCopying(t *testing.T) {
	p := *Off()
	p.MaxAttempts = 7
	require.True(t, p.IsOff())
	require.NoError(t, p.Check())
	require.False(t, p.Next(fail(call.ServerFault)).Again)
	require.False(t, (&Policy{}).IsOff())
	require.False(t, (*Policy)(nil).IsOff())
}
