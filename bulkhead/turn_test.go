package bulkhead_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/holdfast-go/holdfast/bulkhead"
	"github.com/holdfast-go/holdfast/internal/mono"
)

func made(t require.TestingT, c bulkhead.Config) *bulkhead.Bulkhead {
	b, err := bulkhead.New("b", c)
	require.NoError(t, err)
	return b
}

func TestATurnIsPolledUntilThePermitsCome(t *testing.T) {
	first := made(t, bulkhead.Config{Limit: 2, Queue: 1, MaxWait: time.Second})
	second := made(t, bulkhead.Config{Limit: 1, Queue: 1, MaxWait: time.Minute})
	var held, got bulkhead.Pair
	require.True(t, held.Try(first, second))

	turn := bulkhead.NewTurn(first, second)
	ok, err := turn.PollAt(mono.Unpack(100), &got)
	require.NoError(t, err)
	require.False(t, ok)
	require.Equal(t, 2, first.InUse(), "it holds the first's permit while it waits for the second's")
	require.Equal(t, 1, second.Waiting())
	until, bounded := turn.UntilAt()
	require.True(t, bounded)
	require.Equal(t, mono.Unpack(100).Add(time.Minute), until)

	held.Release()
	ok, err = turn.PollAt(mono.Unpack(200), &got)
	require.NoError(t, err)
	require.True(t, ok)
	require.Equal(t, 1, first.InUse())
	require.Equal(t, 1, second.InUse())
	_, bounded = turn.UntilAt()
	require.False(t, bounded)
	require.NoError(t, turn.LeaveAt(mono.Unpack(300)), "too late: there is nothing to leave")
	got.Release()
	require.True(t, first.Idle() && second.Idle())
}

func TestARefusedOrLeftTurnHoldsNothing(t *testing.T) {
	first := made(t, bulkhead.Config{Limit: 5})
	second := made(t, bulkhead.Config{Limit: 1, Queue: 1})
	var held, got bulkhead.Pair
	require.True(t, held.Try(nil, second))

	waits := bulkhead.NewTurn(first, second)
	ok, err := waits.PollAt(mono.Instant{}, &got)
	require.NoError(t, err)
	require.False(t, ok)
	_, bounded := waits.UntilAt()
	require.False(t, bounded, "MaxWait 0 waits to the attempt's limit")

	refused := bulkhead.NewTurn(first, second)
	ok, err = refused.PollAt(mono.Instant{}, &got)
	require.False(t, ok)
	require.ErrorIs(t, err, bulkhead.ErrFull)
	require.Equal(t, 1, first.InUse())

	err = waits.LeaveAt(mono.Unpack(1))
	require.ErrorIs(t, err, bulkhead.ErrFull)
	var full *bulkhead.FullError
	require.ErrorAs(t, err, &full)
	require.Equal(t, bulkhead.ContextEnded, full.Reason(), "MaxWait has no end: it is the attempt's limit")
	require.ErrorIs(t, err, context.DeadlineExceeded)
	require.True(t, first.Idle())
	held.Release()
	require.True(t, second.Idle())

	// A permit that was granted to who leaves goes to the next.
	var again, last bulkhead.Pair
	require.True(t, again.Try(nil, second))
	leaver := bulkhead.NewTurn(nil, second)
	_, err = leaver.PollAt(mono.Instant{}, &got)
	require.NoError(t, err)
	again.Release() // granted, and not yet asked for
	require.ErrorIs(t, leaver.LeaveAt(mono.Unpack(1)), bulkhead.ErrFull)
	require.True(t, last.Try(nil, second))
}

// LeaveAt says why: MaxWait is over, or else the attempt's own limit.
func TestALeftTurnSaysWhy(t *testing.T) {
	b := made(t, bulkhead.Config{Limit: 1, Queue: 1, MaxWait: time.Second})
	var held, got bulkhead.Pair
	require.True(t, held.Try(b, nil))
	for after, want := range map[time.Duration]bulkhead.Reason{
		time.Second - 1: bulkhead.ContextEnded, time.Second: bulkhead.WaitedOut, time.Hour: bulkhead.WaitedOut,
	} {
		turn := bulkhead.NewTurn(b, nil)
		ok, err := turn.PollAt(mono.Unpack(100), &got)
		require.NoError(t, err)
		require.False(t, ok)
		var full *bulkhead.FullError
		require.ErrorAs(t, turn.LeaveAt(mono.Unpack(100).Add(after)), &full)
		require.Equal(t, want, full.Reason(), after)
		require.Equal(t, want == bulkhead.ContextEnded, errors.Is(full, context.DeadlineExceeded))
	}
}

// A turn has its place among those who wait in Acquire.
func TestK1_ATurnQueuesWithTheOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := made(t, bulkhead.Config{Limit: 1, Queue: 3})
		var held, mine bulkhead.Pair
		require.True(t, held.Try(nil, b))
		var order []string
		wait := func(name string) {
			go func() {
				p, err := b.Acquire(context.Background())
				if err != nil {
					t.Error(err)
				}
				order = append(order, name)
				p.Release()
			}()
			synctest.Wait()
		}
		wait("before")
		turn := bulkhead.NewTurn(nil, b)
		ok, err := turn.PollAt(mono.Instant{}, &mine)
		require.NoError(t, err)
		require.False(t, ok)
		wait("after")

		held.Release()
		synctest.Wait()
		require.Equal(t, []string{"before"}, order)
		ok, err = turn.PollAt(mono.Unpack(1), &mine)
		require.NoError(t, err)
		require.True(t, ok)
		mine.Release()
		synctest.Wait()
		require.Equal(t, []string{"before", "after"}, order)
	})
}

// Whatever is asked in whatever order, the limits hold and nothing is lost.
func TestTurnsKeepTheLimits(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		limit, inner := rapid.IntRange(1, 4).Draw(t, "limit"), rapid.IntRange(1, 4).Draw(t, "inner")
		queue := rapid.IntRange(0, 3)
		outer := made(t, bulkhead.Config{Limit: limit, Queue: queue.Draw(t, "queue")})
		part := made(t, bulkhead.Config{Limit: inner, Queue: queue.Draw(t, "inner queue")})
		type entry struct {
			turn bulkhead.Turn
			pair bulkhead.Pair
			in   bool
		}
		var all []*entry
		pick := func(t *rapid.T) (int, *entry) {
			if len(all) == 0 {
				t.Skip("nobody")
			}
			i := rapid.IntRange(0, len(all)-1).Draw(t, "who")
			return i, all[i]
		}
		drop := func(i int) { all = append(all[:i], all[i+1:]...) }
		t.Repeat(map[string]func(*rapid.T){
			"begin": func(t *rapid.T) {
				e := &entry{turn: bulkhead.NewTurn(part, outer)}
				ok, err := e.turn.PollAt(mono.Instant{}, &e.pair)
				if e.in = ok; err == nil {
					all = append(all, e)
				}
			},
			"poll": func(t *rapid.T) {
				i, e := pick(t)
				if !e.in {
					ok, err := e.turn.PollAt(mono.Instant{}, &e.pair)
					if e.in = ok; err != nil {
						drop(i)
					}
				}
			},
			"end": func(t *rapid.T) {
				i, e := pick(t)
				if e.in {
					e.pair.Release()
				} else {
					require.ErrorIs(t, e.turn.LeaveAt(mono.Instant{}), bulkhead.ErrFull)
				}
				drop(i)
			},
			"": func(t *rapid.T) {
				require.LessOrEqual(t, outer.InUse(), limit)
				require.LessOrEqual(t, part.InUse(), inner)
			},
		})
		for _, e := range all {
			if e.in {
				e.pair.Release()
			} else {
				require.ErrorIs(t, e.turn.LeaveAt(mono.Instant{}), bulkhead.ErrFull)
			}
		}
		require.True(t, outer.Idle() && part.Idle(), "nothing is lost")
	})
}
