package redisstore_test

import (
	"context"
	"fmt"
	"net"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/holdfast-go/holdfast/breaker"
	"github.com/holdfast-go/holdfast/breaker/breakertest"
	"github.com/holdfast-go/holdfast/breaker/redisstore"
)

// side is one of two stores that are told the same, with the generations that it
// has given out, by which those of one are told by those of the other.
type side struct {
	breaker.Store
	generations []uint64
}

// number returns the place of a generation among those of the side.
func (s *side) number(generation uint64) int {
	if generation == 0 {
		return -1
	}
	for i, g := range s.generations {
		if g == generation {
			return i
		}
	}
	s.generations = append(s.generations, generation)
	return len(s.generations) - 1
}

func (s *side) generation(number int) uint64 {
	if number < 0 || number >= len(s.generations) {
		return 0
	}
	return s.generations[number]
}

// The scripts do what the store in memory does, whatever they are told and when.
func TestScriptsDoWhatTheMemoryDoes(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) { rapid.SyncTest(t, duel) })
}

func duel(t *rapid.T) {
	m := miniredis.NewMiniRedis()
	m.ClockTTL(true)
	o := options("127.0.0.1:1")
	o.Dialer = func(context.Context, string, string) (net.Conn, error) { return m.Dial() }
	c := redis.NewClient(o)
	defer m.Close()
	defer c.Close()
	scripts, err := redisstore.New(c, redisstore.Options{})
	require.NoError(t, err)
	sides := []*side{{Store: breakertest.NewMemory()}, {Store: scripts}}
	ctx := context.Background()

	seconds := rapid.IntRange(0, 12)
	worker := rapid.SampledFrom([]string{"a", "b", "c d"})
	for range rapid.IntRange(1, 25).Draw(t, "steps") {
		time.Sleep(time.Duration(seconds.Draw(t, "pause")) * time.Second)
		key := rapid.SampledFrom([]string{"x", "y{}"}).Draw(t, "key")
		what := rapid.SampledFrom([]string{"open", "probe", "probe", "settle", "settle", "force"}).Draw(t, "what")
		length := time.Duration(1+seconds.Draw(t, "length")) * time.Second
		opening := breaker.Opening{
			Worker: worker.Draw(t, "worker"), Reason: breaker.ReasonFailures, Nth: 1 + seconds.Draw(t, "nth"),
			Cooldown: length, Left: min(length, time.Duration(seconds.Draw(t, "left"))*time.Second),
			Quorum: rapid.IntRange(0, 2).Draw(t, "quorum"), Keep: 30 * time.Second,
		}
		number := rapid.IntRange(-1, 6).Draw(t, "generation")
		knows := rapid.IntRange(-1, 6).Draw(t, "known")
		claim := breaker.Claim{
			Shared: rapid.Bool().Draw(t, "shared"), Token: worker.Draw(t, "token"),
			Lease: time.Duration(1+seconds.Draw(t, "lease")) * time.Second,
		}
		e := breaker.Settlement{
			Locked:  rapid.Bool().Draw(t, "locked"),
			Outcome: breaker.ProbeOutcome(rapid.IntRange(1, 5).Draw(t, "outcome")),
			To:      rapid.SampledFrom([]breaker.State{breaker.HalfOpen, breaker.Closed, breaker.Open}).Draw(t, "to"),
		}
		do := breaker.Action(rapid.IntRange(1, 4).Draw(t, "do"))

		var said [2]string
		for i, s := range sides {
			o := opening
			o.Known = s.generation(knows)
			cl := claim
			cl.Opening, cl.Generation = o, s.generation(number)
			var rec breaker.Record
			var err error
			switch what {
			case "open":
				rec, err = s.Open(ctx, "s", key, o)
			case "probe":
				rec, err = s.Probe(ctx, "s", key, cl)
			case "settle":
				end := e
				end.Claim = cl
				rec, err = s.Settle(ctx, "s", key, end)
			case "force":
				rec, err = s.Force(ctx, "s", key, breaker.Order{Opening: o, Do: do, Note: "a note"})
			}
			require.NoError(t, err)
			said[i] = s.tell(rec)
			ch, err := s.Changes(ctx, "s", breaker.Mark{})
			require.NoError(t, err)
			for _, rec := range ch.Records {
				said[i] += "\n" + s.tell(rec)
			}
		}
		require.Equal(t, said[0], said[1], what)
	}
}

// tell writes a record down with its generation as a number.
func (s *side) tell(rec breaker.Record) string {
	n := s.number(rec.Generation)
	rec.Mark, rec.Generation = breaker.Mark{}, 0
	return fmt.Sprintf("%d %+v", n, rec)
}
