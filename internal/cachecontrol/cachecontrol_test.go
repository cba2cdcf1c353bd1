package cachecontrol_test

import (
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/holdfast-go/holdfast/internal/cachecontrol"
)

func in(seconds int) cachecontrol.Seconds {
	return cachecontrol.Seconds{Set: true, Duration: time.Duration(seconds) * time.Second}
}

func TestDirectives(t *testing.T) {
	type D = cachecontrol.Directives
	for value, want := range map[string]D{
		"":                             {},
		" , ,\t,":                      {},
		"no-store":                     {NoStore: true},
		"NO-Store , No-CACHE":          {NoStore: true, NoCache: true},
		"private, max-age=60":          {Private: true, MaxAge: in(60)},
		`private="Set-Cookie, X"`:      {Private: true},
		`no-cache="a\"b, no-store"`:    {NoCache: true}, // what is quoted is no directive
		"max-age=60,must-revalidate":   {MaxAge: in(60), MustRevalidate: true},
		"proxy-revalidate":             {MustRevalidate: true},
		"s-maxage=5, max-age=60":       {SharedMaxAge: in(5), MaxAge: in(60), MustRevalidate: true},
		`max-age="60"`:                 {MaxAge: in(60)},
		"max-age=60, max-age=30":       {MaxAge: in(30)},
		"max-age=30, max-age=60":       {MaxAge: in(30)},
		"max-age=-1":                   {MaxAge: in(0)},
		"max-age=6x":                   {MaxAge: in(0)},
		"max-age=1.5":                  {MaxAge: in(0)},
		"max-age":                      {MaxAge: in(0)},
		`max-age=""`:                   {MaxAge: in(0)},
		"max-age=99999999999999999999": {MaxAge: in(1 << 31)},
		"stale-if-error=120, x=y, immutable, community=\"UCI\"": {StaleIfError: in(120)},
		"must-understand, no-store":                             {NoStore: true},
		"x=\"a\tb\", no-store":                                  {NoStore: true},
	} {
		got, ok := cachecontrol.Parse([]string{value})
		require.True(t, ok, value)
		require.Equal(t, want, got, value)
	}
	got, ok := cachecontrol.Parse([]string{"max-age=9", "no-store", ""})
	require.True(t, ok)
	require.Equal(t, D{MaxAge: in(9), NoStore: true}, got)
}

func TestWhatIsNoListOfDirectives(t *testing.T) {
	for _, value := range []string{
		"max-age = 60", "max-age=", "=5", "no store", `private="x`, `private="x\`, "a=b=c", "no-store;", `"no-store"`,
		"no-store\x00", "private=\"a\nb\"", `private="a"b`, "máx-age=1", "private=\"\\\x01\"", "a\x7f", "private=\"a\x7f\"",
	} {
		got, ok := cachecontrol.Parse([]string{"max-age=5", value})
		require.False(t, ok, value)
		require.Zero(t, got)
	}
}

// The nearest of what is asked for holds.
func TestLimit(t *testing.T) {
	const fresh, most = 10 * time.Second, time.Minute
	for value, want := range map[string]time.Duration{
		"":                                    most,
		"max-age=10":                          most,
		"must-revalidate":                     fresh,
		"stale-if-error=0":                    fresh,
		"stale-if-error=20":                   30 * time.Second,
		"stale-if-error=3600":                 most,
		"stale-if-error=20, proxy-revalidate": fresh,
	} {
		d, ok := cachecontrol.Parse([]string{value})
		require.True(t, ok)
		require.Equal(t, want, d.Limit(fresh, most), value)
	}
	require.Equal(t, time.Second, cachecontrol.Directives{MustRevalidate: true}.Limit(fresh, time.Second))
}

// What is written by the grammar is read back, however it is spaced and cased.
func TestWhatIsWrittenIsRead(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		want := cachecontrol.Directives{
			NoStore: rapid.Bool().Draw(t, "no-store"), NoCache: rapid.Bool().Draw(t, "no-cache"),
			Private: rapid.Bool().Draw(t, "private"), MustRevalidate: rapid.Bool().Draw(t, "must-revalidate"),
		}
		var members []string
		for name, set := range map[string]bool{"no-store": want.NoStore, "no-cache": want.NoCache, "private": want.Private, "must-revalidate": want.MustRevalidate} {
			if set {
				members = append(members, name)
			}
		}
		if rapid.Bool().Draw(t, "max-age") {
			n := rapid.IntRange(0, 1<<31).Draw(t, "seconds")
			want.MaxAge = in(n)
			members = append(members, "max-age="+strconv.Itoa(n))
		}
		members = append(members, rapid.SampledFrom([]string{"", "x", `y="no-store, private"`, "z=1"}).Draw(t, "other"))
		members = rapid.Permutation(members).Draw(t, "order")
		if rapid.Bool().Draw(t, "upper") {
			for i := range members {
				members[i] = strings.ToUpper(members[i])
			}
		}
		sep := rapid.SampledFrom([]string{",", ", ", " ,\t", ",,"}).Draw(t, "separator")
		got, ok := cachecontrol.Parse([]string{strings.Join(members, sep)})
		require.True(t, ok)
		require.Equal(t, want, got)
	})
}

// FuzzCacheControl holds the reader to what must be true of any text: it does not
// panic, what it cannot read says nothing, a line more can forbid more but allow
// nothing, and case makes no difference.
func FuzzCacheControl(f *testing.F) {
	for _, seed := range []string{
		"", "no-store", "private, max-age=60", `no-cache="Set-Cookie, X", s-maxage=10`, "max-age=99999999999999999999",
		`a="\"\\", must-revalidate`, "stale-if-error=86400, stale-while-revalidate=60", ",,,", `private="`, "max-age=\x00",
		"no-cache, proxy-revalidate, s-maxage=x", `private="a\"b\\c", max-age="7"`, "stale-if-error", "=1", "max-age=", "max-age 1", `a="\`, "a=\"\x01\"",
		"max-age=1,max-age=2", "PUBLIC, MAX-AGE=5", "must-understand, no-store", "x=y=z", "\t no-store \t,",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, value string) {
		d, ok := cachecontrol.Parse([]string{value})
		if !ok {
			require.Zero(t, d)
			return
		}
		for _, s := range []cachecontrol.Seconds{d.MaxAge, d.SharedMaxAge, d.StaleIfError} {
			require.True(t, s.Set || s.Duration == 0)
			require.True(t, 0 <= s.Duration && s.Duration <= (1<<31)*time.Second)
		}
		if d.NoStore {
			require.Contains(t, strings.ToLower(value), "no-store")
		}
		more, ok := cachecontrol.Parse([]string{value, "no-store, max-age=7"})
		require.True(t, ok)
		require.True(t, more.NoStore && more.MaxAge.Set && more.MaxAge.Duration <= 7*time.Second)
		require.Equal(t, d.Private, more.Private)
		upper, ok := cachecontrol.Parse([]string{asciiUpper(value)})
		require.True(t, ok)
		require.Equal(t, d, upper)
	})
}

func asciiUpper(s string) string {
	b := []byte(s)
	for i, c := range b {
		if 'a' <= c && c <= 'z' {
			b[i] = c - 'a' + 'A'
		}
	}
	return string(b)
}
