package redisstore

import (
	"math/big"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-go/holdfast/breaker"
)

// D096, S4: whatever stands in a record, it is an error or a record that can be acted
// on: nothing in it lasts longer than its own length, and what is not open or not
// held has none.
func FuzzRecord(f *testing.F) {
	for _, line := range []string{
		"1 7 6 0 0 0 0 0 0 0 - - 0 0 0 - 9000000000 -",                                        // closed
		"1 7 6 1 1000000 5000000 2 1 0 0 host-a%20b - 0 0 0 - 9000000000 -",                   // open
		"1 7 6 1 -5 5000000 2 1 1 3 w w%3A1 1500000 400000 0 - 9000000000 -",                  // open, with a probe
		"1 7 6 1 1000000 5000000 2 1 0 0 w w 99000000 400000 0 - 9000000000 -",                // held ahead of the clock
		"1 7 6 0 0 0 0 0 0 0 - - 0 0 1 until+14%3A00 9000000000 -",                            // forced open
		"1 7 6 0 0 0 0 0 0 0 - - 0 0 0 - 1 a=3000000,b=1,c,d=x,=9",                            // with reports
		"1 7 6 1 9223372036854775 9223372036854775 1 1 0 0 w w 1 9223372036854775807 0 - 1 -", // as long as it goes
		"1 7 6 1 -9223372036854775 1 1 1 0 0 w - 0 0 0 - 1 -",                                 // as long ago as it goes
		"1 7 6 1 9223372036854776 1 1 1 0 0 w - 0 0 0 - 1 -",                                  // and longer
		"2 7 6 0 0 0 0 0 0 0 - - 0 0 0 - 1 -", "x", "", "1 7", "1 7 6 0 0 0 0 0 0 0 - - 0 0 0 - 1 - more", "1 -7 6 0 0 0 0 0 0 0 - - 0 0 0 - 1 -",
		"1 7 6 0 0 0 0 0 0 0 %zz - 0 0 0 - 1 -", "1 7 6 2 0 0 0 999 0 0 %2D %00 0 0 2 - 1 -",
		"1 0 0 01 0 0 0 0 0 0 0 0 0 0 0 0 0 0", // a number with a nought before it
	} {
		f.Add(line, uint64(3), int64(2_000_000))
	}
	f.Add("1 7 6 1 -9223372036854775 9223372036854775 1 1 0 0 w w 1 1 0 - 1 -", uint64(0), int64(0))
	f.Fuzz(func(t *testing.T, line string, epoch uint64, micros int64) {
		now := time.Duration(micros) * time.Microsecond
		if micros < 0 || micros > 1<<53 {
			return // beyond what the server's clock shows
		}
		rec, err := parse("key", line, epoch, now)
		if err != nil {
			require.Equal(t, breaker.Record{}, rec)
			return
		}
		words := strings.Fields(line)
		require.Len(t, words, 18)
		require.Equal(t, "key", rec.Key)
		require.Equal(t, epoch, rec.Mark.Epoch)
		require.Equal(t, strings.TrimLeft(words[3], "0") == "1", rec.Open)
		if rec.Open {
			opened, cooldown := whole(t, words[4]), big.NewInt(int64(rec.Cooldown))
			over := new(big.Int).Sub(big.NewInt(int64(now)), opened)
			require.Equal(t, within(over, nil), int64(rec.Age))
			require.Equal(t, within(new(big.Int).Sub(cooldown, over), cooldown), int64(rec.Left))
		} else {
			require.Equal(t, breaker.Record{
				Key: rec.Key, Mark: rec.Mark, Generation: rec.Generation, Holder: rec.Holder, Lease: rec.Lease,
				Forced: rec.Forced, Note: rec.Note, Keep: rec.Keep, Reports: rec.Reports,
			}, rec)
		}
		require.Equal(t, rec.Holder != "", rec.Lease > 0)
		lease := whole(t, words[13])
		require.LessOrEqual(t, int64(rec.Lease), within(lease, nil))
		require.LessOrEqual(t, rec.Reports, strings.Count(words[17], ",")+1)
		for _, text := range []string{rec.Worker, rec.Holder, rec.Note, line} {
			r := reader{words: []any{escape(text)}}
			require.Equal(t, text, r.escaped())
			require.NoError(t, r.err)
			require.Len(t, strings.Fields(escape(text)), 1)
		}
	})
}

// whole reads a number of microseconds as nanoseconds.
func whole(t *testing.T, word string) *big.Int {
	n, ok := new(big.Int).SetString(word, 10)
	require.True(t, ok)
	return n.Mul(n, big.NewInt(1000))
}

// within returns n, or the end that is nearest of what a length of time can be: from
// 0 to most, if that is not nil.
func within(n, most *big.Int) int64 {
	if most == nil {
		most = big.NewInt(1<<63 - 1)
	}
	switch {
	case n.Sign() < 0:
		return 0
	case n.Cmp(most) > 0:
		return most.Int64()
	}
	return n.Int64()
}
