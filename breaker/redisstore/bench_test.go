package redisstore_test

import (
	"fmt"
	"regexp"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-go/holdfast/breaker"
)

// BenchmarkCommands tells what the commands cost the server: the microseconds of
// its one thread that it spends in each, by its own account (INFO commandstats),
// and how many a second go through it from this machine, which the clients share
// with it.
func BenchmarkCommands(b *testing.B) {
	if _, err := program(); err != nil {
		b.Skip(err) // the figures are those of a real server
	}
	c := client(b, startServer(b))
	s := store(b, c)
	ctx := b.Context()
	for _, keys := range []int{0, 1000} {
		require.NoError(b, c.FlushAll(ctx).Err())
		var last breaker.Record
		for i := range keys {
			rec, err := s.Open(ctx, "s", fmt.Sprint(i), opening("a"))
			require.NoError(b, err)
			last = rec
		}
		claim := breaker.Claim{Opening: opening("b"), Shared: true, Token: "b", Generation: last.Generation, Lease: time.Minute}
		if keys > 0 {
			_, err := s.Probe(ctx, "s", last.Key, claim)
			require.NoError(b, err)
			claim.Token = "c"
		}
		ch, err := s.Changes(ctx, "s", breaker.Mark{Epoch: last.Epoch, Revision: last.Revision + 1})
		require.NoError(b, err)
		for more := ch.More; more; more = ch.More {
			ch, err = s.Changes(ctx, "s", ch.Mark)
			require.NoError(b, err)
		}
		for name, do := range map[string]func() error{
			"refresh":  func() error { _, err := s.Changes(ctx, "s", ch.Mark); return err },
			"join":     func() error { _, err := s.Open(ctx, "s", "0", opening("b")); return err },
			"lockHeld": func() error { _, err := s.Probe(ctx, "s", last.Key, claim); return err },
		} {
			if keys == 0 && name != "refresh" {
				continue
			}
			b.Run(fmt.Sprintf("%s/open=%d", name, keys), func(b *testing.B) {
				require.NoError(b, c.ConfigResetStat(ctx).Err())
				b.SetParallelism(16)
				b.RunParallel(func(pb *testing.PB) {
					for pb.Next() {
						if err := do(); err != nil {
							b.Error(err)
						}
					}
				})
				b.StopTimer()
				info, err := c.Info(ctx, "commandstats").Result()
				require.NoError(b, err)
				spent := regexp.MustCompile(`cmdstat_evalsha:.*usec_per_call=([0-9.]+)`).FindStringSubmatch(info)
				require.NotNil(b, spent, info)
				us, err := strconv.ParseFloat(spent[1], 64)
				require.NoError(b, err)
				b.ReportMetric(us, "server-us/op")
				b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "commands/s")
			})
		}
	}
}
