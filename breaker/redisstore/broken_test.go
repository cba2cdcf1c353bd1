package redisstore_test

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-go/holdfast/breaker"
)

const (
	records = "{holdfast:s}:v1:records"
	changed = "{holdfast:s}:v1:changes"
)

func opening(worker string) breaker.Opening {
	return breaker.Opening{
		Worker: worker, Reason: breaker.ReasonFailures, Nth: 1, Cooldown: 10 * time.Second, Left: 10 * time.Second, Keep: time.Minute,
	}
}

// D096: what cannot be read is no knowledge, and is written over.
func TestD096_WhatCannotBeReadIsNotThere(t *testing.T) {
	c := client(t, server(t))
	s := store(t, c)
	ctx := t.Context()
	for name, spoil := range map[string]func(){
		"all keys lost":             func() { c.FlushAll(ctx) },
		"records lost":              func() { c.Del(ctx, records) },
		"changes lost":              func() { c.Del(ctx, changed) },
		"records of another type":   func() { c.Del(ctx, records); c.LPush(ctx, records, "x") },
		"changes of another type":   func() { c.Del(ctx, changed); c.Set(ctx, changed, "x", 0) },
		"both of another type":      func() { c.Set(ctx, records, "x", 0); c.Set(ctx, changed, "x", 0) },
		"a record that is garbage":  func() { c.HSet(ctx, records, "kdb", "\x00\xffgarbage") },
		"a record that is empty":    func() { c.HSet(ctx, records, "kdb", "") },
		"a record of another form":  func() { c.HSet(ctx, records, "kdb", "1 a b c d e f g h i j k l m n o p q") },
		"a record that is too long": func() { c.HSet(ctx, records, "kdb", "1 1 1 1 1 1 1 1 1 1 w - 0 0 0 - 9999999999999999 - -") },
		"a later version":           func() { c.HSet(ctx, records, "kdb", "2 1 1 1 1 1 1 1 1 1 w - 0 0 0 - 9999999999999999 -") },
		"no epoch":                  func() { c.HDel(ctx, records, "m") },
		"an epoch that is garbage":  func() { c.HSet(ctx, records, "m", "garbage") },
		"an epoch of nothing":       func() { c.HSet(ctx, records, "m", "0 1") },
		"an epoch too large":        func() { c.HSet(ctx, records, "m", "99999999999999999999 1") },
		"a revision too large":      func() { c.HSet(ctx, records, "m", "1 99999999999999999999") },
		"a change of nothing":       func() { c.ZAdd(ctx, changed, redis.Z{Score: 1e15, Member: "ghost"}) },
		"a record without a change": func() { c.HSet(ctx, records, "kghost", "1") },
	} {
		t.Run(name, func(t *testing.T) {
			require.NoError(t, c.FlushAll(ctx).Err())
			first, err := s.Open(ctx, "s", "db", opening("a"))
			require.NoError(t, err)
			spoil()
			ch, err := s.Changes(ctx, "s", breaker.Mark{})
			require.NoError(t, err)
			require.Empty(t, ch.Records)
			again, err := s.Open(ctx, "s", "db", opening("b"))
			require.NoError(t, err)
			require.True(t, again.Open)
			require.Equal(t, "b", again.Worker)
			require.Greater(t, again.Generation, first.Generation)
			ch, err = s.Changes(ctx, "s", breaker.Mark{})
			require.NoError(t, err)
			require.Len(t, ch.Records, 1)
			expire(t, c)
		})
	}
}

// S4: a record that has the form of one and cannot be read is no knowledge
// either, and keeps nobody from the others.
func TestS4_ARecordThatOnlyLooksLikeOne(t *testing.T) {
	c := client(t, server(t))
	s := store(t, c)
	ctx := t.Context()
	for name, line := range map[string]string{
		"a number too large":    "1 1 99999999999999999999 1 1 1 1 1 1 1 w - 0 0 0 - 9007199254740000 -",
		"a time too large":      "1 1 1 1 -99999999999999999999 1 1 1 1 1 w - 0 0 0 - 9007199254740000 -",
		"never to expire":       "1 1 1 1 1 1 1 1 1 1 w - 0 0 0 - 99999999999999999999 -",
		"a text that is broken": "1 1 1 1 1 1 1 1 1 1 w%zz - 0 0 0 - 9007199254740000 -",
		"a holder cut off":      "1 1 1 1 1 1 1 1 1 1 w w%2 0 0 0 - 9007199254740000 -",
	} {
		t.Run(name, func(t *testing.T) {
			require.NoError(t, c.FlushAll(ctx).Err())
			_, err := s.Open(ctx, "s", "other", opening("a"))
			require.NoError(t, err)
			_, err = s.Open(ctx, "s", "db", opening("a"))
			require.NoError(t, err)
			require.NoError(t, c.HSet(ctx, records, "kdb", line).Err())
			_, err = s.Probe(ctx, "s", "db", breaker.Claim{Opening: opening("a"), Token: "t", Generation: 1, Lease: time.Second})
			require.NoError(t, err)
			require.NoError(t, c.HSet(ctx, records, "kdb", line).Err())
			ch, err := s.Changes(ctx, "s", breaker.Mark{})
			require.NoError(t, err)
			require.Len(t, ch.Records, 1)
			again, err := s.Open(ctx, "s", "db", opening("b"))
			require.NoError(t, err)
			require.Equal(t, "b", again.Worker)
			expire(t, c)
		})
	}
}

// expire shows that every key expires.
func expire(t *testing.T, c *redis.Client) {
	t.Helper()
	keys, err := c.Keys(t.Context(), "*").Result()
	require.NoError(t, err)
	require.NotEmpty(t, keys)
	for _, key := range keys {
		ttl, err := c.PTTL(t.Context(), key).Result()
		require.NoError(t, err)
		require.Positive(t, ttl, key)
	}
}

// D101.
func TestD101_EveryKeyExpires(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m, c := embedded(t)
		s := store(t, c)
		for i := range 1000 {
			_, err := s.Open(t.Context(), "s", time.Duration(i).String(), opening("a"))
			require.NoError(t, err)
		}
		expire(t, c)
		time.Sleep(50 * time.Second)
		ch, err := s.Changes(t.Context(), "s", breaker.Mark{})
		require.NoError(t, err)
		require.Len(t, ch.Records, 500, "an open circuit does not expire early")
		require.True(t, ch.More)

		// While some are in use, those that are not go too.
		time.Sleep(20 * time.Second)
		for i := range 200 {
			_, err := s.Open(t.Context(), "s", "busy", known(opening("a"), uint64(1e15)+uint64(i)))
			require.NoError(t, err)
			_, err = s.Force(t.Context(), "s", "busy", breaker.Order{Opening: opening("a"), Do: breaker.ForceNow})
			require.NoError(t, err)
		}
		fields, err := c.HLen(t.Context(), records).Result()
		require.NoError(t, err)
		require.EqualValues(t, 2, fields)
		time.Sleep(61 * time.Second)
		require.Empty(t, m.Keys())
	})
}

// D101: what has expired goes however many live for long, and wherever they stand.
func TestD101_WhatLivesLongKeepsNothingElse(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, c := embedded(t)
		s := store(t, c)
		forced := 0
		for i := range 1000 {
			if i%100 < 10 && forced < 50 { // some of the oldest, and some in between
				forced++
				_, err := s.Force(t.Context(), "s", fmt.Sprint("forced", i), breaker.Order{
					Do: breaker.ForceNow, Opening: breaker.Opening{Worker: "a", Keep: 7 * 24 * time.Hour},
				})
				require.NoError(t, err)
			}
			_, err := s.Open(t.Context(), "s", fmt.Sprint("host", i), opening("a"))
			require.NoError(t, err)
			time.Sleep(time.Second + 17*time.Microsecond)
		}
		// 60 live for the minute that they are kept.
		require.LessOrEqual(t, c.HLen(t.Context(), records).Val(), int64((forced+60)*3/2))
	})
}

func known(o breaker.Opening, revision uint64) breaker.Opening {
	o.Known = revision
	return o
}

// The clock of the server is put on or back: a lock is never given to two, and
// no cooldown or lease is longer than it was to be.
func TestClockSteps(t *testing.T) {
	m := miniredis.RunT(t)
	s := store(t, client(t, m.Addr()))
	ctx, clock := t.Context(), time.Date(2026, 3, 29, 2, 0, 0, 0, time.UTC)
	at := func(d time.Duration) { m.SetTime(clock.Add(d)) }
	claim := func(worker string, gen uint64) breaker.Claim {
		return breaker.Claim{Opening: opening(worker), Shared: true, Token: worker, Generation: gen, Lease: 10 * time.Second}
	}
	at(0)
	rec, err := s.Open(ctx, "s", "db", opening("a"))
	require.NoError(t, err)
	gen := rec.Generation
	_, err = s.Probe(ctx, "s", "db", claim("a", gen))
	require.NoError(t, err)

	at(-time.Hour)
	rec, err = s.Probe(ctx, "s", "db", claim("b", gen))
	require.NoError(t, err)
	require.Equal(t, "a", rec.Holder)
	require.Equal(t, 10*time.Second, rec.Lease)
	require.Equal(t, 10*time.Second, rec.Left)
	next, err := s.Open(ctx, "s", "another", opening("a"))
	require.NoError(t, err)
	require.Greater(t, next.Revision, rec.Revision, "revisions do not go back")
	rec, err = s.Settle(ctx, "s", "db", breaker.Settlement{
		Claim: claim("a", gen), Locked: true, Outcome: breaker.ProbeSucceeded, To: breaker.Closed,
	})
	require.NoError(t, err)
	require.False(t, rec.Open, "the holder has it still")

	at(24 * time.Hour) // all has expired
	ch, err := s.Changes(ctx, "s", breaker.Mark{})
	require.NoError(t, err)
	require.Empty(t, ch.Records)
}

// The script cache may be emptied, by a restart or a fail-over.
func TestScriptsAreSentAgain(t *testing.T) {
	c := client(t, server(t))
	s := store(t, c)
	for range 3 {
		require.NoError(t, c.ScriptFlush(t.Context()).Err())
		_, err := s.Changes(t.Context(), "s", breaker.Mark{})
		require.NoError(t, err)
		_, err = s.Open(t.Context(), "s", "db", opening("a"))
		require.NoError(t, err)
	}
}

func TestAPrefixKeepsStoresApart(t *testing.T) {
	c := client(t, server(t))
	a, b := prefixed(t, c, "a"), prefixed(t, c, "b")
	_, err := a.Open(t.Context(), "s", "db", opening("a"))
	require.NoError(t, err)
	ch, err := b.Changes(t.Context(), "s", breaker.Mark{})
	require.NoError(t, err)
	require.Empty(t, ch.Records)
}
