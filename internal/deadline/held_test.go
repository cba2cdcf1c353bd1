package deadline_test

import (
	"context"
	"errors"
	"math"
	"runtime"
	"testing"
	"testing/synctest"
	"time"
	"weak"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/holdfast-go/holdfast/internal/deadline"
	"github.com/holdfast-go/holdfast/internal/mono"
	"github.com/holdfast-go/holdfast/timeout"
)

func attempt(d time.Duration) deadline.Bound { return deadline.Bound{}.Nearer("Attempt", d) }

// asked runs a test for a context that somebody waits for, as a transport does,
// and for one that nobody does.
func asked(t *testing.T, test func(t *testing.T, ask func(context.Context))) {
	for name, ask := range map[string]func(context.Context){
		"asked":     func(ctx context.Context) { ctx.Done() },
		"not asked": func(context.Context) {},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { test(t, ask) })
		})
	}
}

// T1: the context ends with the limit's error as the cause, unless the first part
// has ended in time; then it lives on.
func TestT1_ALimitEndsTheFirstPart(t *testing.T) {
	asked(t, func(t *testing.T, ask func(context.Context)) {
		for _, tc := range []struct {
			after  time.Duration
			passes bool
		}{{999 * time.Millisecond, false}, {1001 * time.Millisecond, true}} {
			for part, bounds := range map[string][2]deadline.Bound{
				"opening": {attempt(time.Second)}, "first": {{}, attempt(time.Second)}, "both": {attempt(time.Second), attempt(time.Second)},
			} {
				h := deadline.Hold(t.Context(), mono.Now(), bounds[0], bounds[1])
				require.Equal(t, part != "opening", h.AwaitsFirst())
				ask(h)
				time.Sleep(tc.after)
				synctest.Wait()
				for range 2 { // a second answer is the first one
					opening, first := h.Opened(), h.Delivered()
					require.Equal(t, tc.passes, opening != nil || first != nil, part)
					require.Equal(t, tc.passes, h.Passed() != nil, part)
				}
				time.Sleep(time.Minute)
				synctest.Wait()
				require.Equal(t, tc.passes, errors.Is(context.Cause(h), timeout.ErrExceeded), part)
				require.Equal(t, tc.passes, h.Err() != nil, part)
				h.Release()
				require.ErrorIs(t, h.Err(), context.Canceled)
				<-h.Done()
			}
		}
	})
}

// The error of a limit names it, whichever it is of those that there are.
func TestAHeldLimitKeepsItsName(t *testing.T) {
	for _, name := range []string{"Total", "Attempt", "ProbeTimeout", "FirstMessage"} {
		synctest.Test(t, func(t *testing.T) {
			bound := deadline.Bound{}.Nearer(name, time.Second)
			opening := deadline.Hold(t.Context(), mono.Now(), bound, deadline.Bound{})
			first := deadline.Hold(t.Context(), mono.Now(), deadline.Bound{}, bound)
			time.Sleep(time.Second)
			require.EqualError(t, opening.Opened(), "timeout: "+name+" limit of 1s exceeded")
			require.EqualError(t, first.Delivered(), "timeout: "+name+" limit of 1s exceeded")
		})
	}
}

// T3: only a wait counts, and each anew (D051).
func TestT3_IdleBoundsOneWait(t *testing.T) {
	asked(t, func(t *testing.T, ask func(context.Context)) {
		h := deadline.Hold(t.Context(), mono.Now(), attempt(time.Hour), deadline.Bound{})
		ask(h)
		require.Nil(t, h.Opened())
		h.WatchIdle(100 * time.Millisecond)
		for range 40 { // moving, if slowly
			h.BeginWait()
			time.Sleep(99 * time.Millisecond)
			require.Nil(t, h.EndWait())
		}
		time.Sleep(3 * time.Hour) // the caller's own pause
		require.NoError(t, h.Err())

		h.BeginWait()
		time.Sleep(100 * time.Millisecond)
		synctest.Wait()
		require.EqualError(t, h.EndWait(), "timeout: Idle limit of 100ms exceeded")
		require.ErrorIs(t, context.Cause(h), timeout.ErrExceeded)
		h.Release()
		require.NotNil(t, h.EndWait(), "what has passed stays so")

		h = deadline.Hold(t.Context(), mono.Now(), deadline.Bound{}, deadline.Bound{})
		ask(h)
		h.WatchIdle(100 * time.Millisecond)
		h.BeginWait()
		h.Release()
		h.Release()
		time.Sleep(time.Hour)
		require.Nil(t, h.EndWait())
		require.Nil(t, h.Passed())
		require.ErrorIs(t, h.Err(), context.Canceled)
	})
}

// T3: who waits when the limit passes is interrupted then, be a limit before it
// nearer, farther or over.
func TestT3_WhoWaitsIsInterruptedInTime(t *testing.T) {
	for _, opening := range []time.Duration{0, time.Millisecond, time.Second, time.Hour} {
		for phase := time.Duration(0); phase < 400*time.Millisecond; phase += 30 * time.Millisecond {
			synctest.Test(t, func(t *testing.T) { interrupted(t, opening, phase) })
		}
	}
}

// interrupted has waits that end in time and, that long after, one that does not.
func interrupted(t *testing.T, opening, phase time.Duration) {
	h := deadline.Hold(t.Context(), mono.Now(), attempt(opening), deadline.Bound{})
	defer h.Release()
	done := h.Done()
	require.Nil(t, h.Opened())
	h.WatchIdle(200 * time.Millisecond)
	for _, pause := range []time.Duration{0, 50 * time.Millisecond, 199 * time.Millisecond, time.Minute} {
		time.Sleep(pause)
		h.BeginWait()
		time.Sleep(150 * time.Millisecond)
		require.Nil(t, h.EndWait())
	}
	time.Sleep(phase)
	began := time.Now()
	h.BeginWait()
	<-done
	require.Equal(t, 200*time.Millisecond, time.Since(began))
}

// T1: whatever is done with it and in whatever order, an attempt's held context
// shows what a standard one shows that a timer cancels.
func TestT1_HeldIsAStandardContext(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		rapid.SyncTest(t, func(t *rapid.T) {
			caller, cancel := callerOf()
			defer cancel(nil)
			left := time.Duration(rapid.IntRange(1, 5).Draw(t, "left")) * time.Second
			h := deadline.Hold(caller, mono.Now(), attempt(left), deadline.Bound{})
			defer h.Release()
			standard, end := context.WithCancelCause(caller)
			passed := false
			timer := time.AfterFunc(left, func() {
				passed = true
				end(&timeout.Error{Limit: "Attempt", After: left})
			})
			defer timer.Stop()
			newTwins(cancel, h, standard).play(t, map[string]func(*rapid.T){
				"opened": func(t *rapid.T) {
					synctest.Wait()
					require.Equal(t, passed, h.Opened() != nil)
					timer.Stop()
				},
				"the attempt ends": func(*rapid.T) {
					h.Release()
					timer.Stop()
					end(nil)
				},
			})
		})
	})
}

// A released attempt is let go: no timer keeps it until its limit would have passed.
func TestAReleasedAttemptIsCollected(t *testing.T) {
	released := func() weak.Pointer[deadline.Held] {
		h := deadline.Hold(context.Background(), mono.Now(), attempt(time.Hour), deadline.Bound{})
		require.NotNil(t, h.Done())
		h.Release()
		return weak.Make(h)
	}()
	require.Eventually(t, func() bool { // the runtime forgets a stopped timer when it next looks
		runtime.GC()
		return released.Value() == nil
	}, 10*time.Second, time.Millisecond)
}

// It costs one allocation to whoever only passes it on, and no goroutine to who
// waits for it.
func TestHeldCostsLittle(t *testing.T) {
	require.Equal(t, 1.0, testing.AllocsPerRun(100, func() {
		h := deadline.Hold(context.Background(), mono.Now(), attempt(time.Hour), deadline.Bound{})
		_, _, _ = h.Err(), h.Opened(), h.Value(keyType{})
		h.WatchIdle(time.Hour)
		h.BeginWait()
		_ = h.EndWait()
		h.Release()
	}))
	before := runtime.NumGoroutine()
	h := deadline.Hold(context.Background(), mono.Now(), attempt(time.Hour), deadline.Bound{})
	child, cancel := context.WithCancel(h)
	defer cancel()
	require.NoError(t, child.Err())
	require.Equal(t, before, runtime.NumGoroutine())
	h.Release()
	require.ErrorIs(t, child.Err(), context.Canceled)
}

// Whoever asks first, and whatever ends it meanwhile.
func TestHeldUnderContention(t *testing.T) {
	for i := range 500 {
		caller, cancel := context.WithCancel(context.Background())
		h := deadline.Hold(caller, mono.Now(), attempt(time.Duration(i+1)*10*time.Nanosecond), deadline.Bound{})
		contend(t, h, cancel, h.Release, func() {
			_ = h.Opened()
			h.WatchIdle(time.Nanosecond)
			h.BeginWait()
			_ = h.EndWait()
		})
	}
}

// Nil has no limits.
func TestHeldNil(t *testing.T) {
	var none *deadline.Held
	none.WatchIdle(time.Second)
	none.BeginWait()
	require.Nil(t, none.EndWait())
	require.Nil(t, none.Opened())
	require.Nil(t, none.Delivered())
	require.Nil(t, none.Passed())
	require.False(t, none.AwaitsFirst())
	none.Release()
	h := deadline.Hold(t.Context(), mono.Now(), deadline.Bound{Left: math.MaxInt64}, deadline.Bound{})
	h.WatchIdle(0)
	require.NoError(t, h.Err(), "0 is no limit, and an endless one never passes")
	h.Release()
}
