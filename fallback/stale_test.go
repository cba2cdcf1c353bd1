package fallback_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/holdfast-go/holdfast/call"
	"github.com/holdfast-go/holdfast/fallback"
)

// F3: a cache policy names its Identity, and every bad field is told of.
func TestF3_AStalePolicyIsChecked(t *testing.T) {
	good := fallback.Stale{Store: &store{}, Identity: fallback.SharedByAll}
	for want, change := range map[string]func(*fallback.Stale){
		"t: Stale.Identity: is missing: a function that names whose answer it is, or fallback.SharedByAll": func(s *fallback.Stale) { s.Identity = nil },
		"t: Stale.Store: is missing; package fallback/memory has one":                                      func(s *fallback.Stale) { s.Store = nil },
		"t: Stale.Fresh = -1s: must not be negative":                                                       func(s *fallback.Stale) { s.Fresh = -time.Second },
		"t: Stale.MaxStale = -1s: must not be negative":                                                    func(s *fallback.Stale) { s.MaxStale = -time.Second },
		"t: Stale.StoreTimeout = -1s: must not be negative":                                                func(s *fallback.Stale) { s.StoreTimeout = -time.Second },
		"t: Stale.MaxBody = -1: must not be negative":                                                      func(s *fallback.Stale) { s.MaxBody = -1 },
		"t: Stale.Fresh = 6m0s: must not be more than MaxStale = 5m0s":                                     func(s *fallback.Stale) { s.Fresh = 6 * time.Minute },
	} {
		s := good
		change(&s)
		require.EqualError(t, fallback.Policy{Stale: &s}.Check().Err("t"), want)
	}
	require.NoError(t, fallback.Policy{Stale: &good}.Check().Err("t"))
	require.Len(t, fallback.Policy{Stale: &fallback.Stale{}}.Check(), 2)
}

func TestAClonesStalePolicyIsItsOwn(t *testing.T) {
	p := &fallback.Policy{Stale: &fallback.Stale{MaxBody: 1}}
	c := p.Clone()
	p.Stale.MaxBody = 2
	require.Equal(t, 1, c.Stale.MaxBody)
	require.Nil(t, (*fallback.Policy)(nil).Clone())
	require.True(t, fallback.Off().Clone().IsOff())
}

func TestARequestsHeaderIsFoundInEitherCase(t *testing.T) {
	for _, name := range []string{"X-User", "x-user", "X-USER"} {
		require.Equal(t, "a", fallback.Request{Header: map[string][]string{"X-User": {"a", "b"}}}.Get(name))
		require.Equal(t, "a", fallback.Request{Header: map[string][]string{"x-user": {"a", "b"}}}.Get(name))
		require.Empty(t, fallback.Request{Header: map[string][]string{"x-user": {}}}.Get(name))
		require.Empty(t, fallback.Request{}.Get(name))
	}
}

// parts is all that a key is made of.
type parts struct {
	scope, user, target, resource string
	fields, list                  []string
}

func drawParts(t *rapid.T, label string) parts {
	text := rapid.StringOfN(rapid.RuneFrom([]rune("a|=*\x00\x01")), 0, 3, -1)
	texts := rapid.SliceOfN(text, 0, 3)
	return parts{
		"s" + text.Draw(t, label+" scope"), "u" + text.Draw(t, label+" user"), text.Draw(t, label+" target"),
		text.Draw(t, label+" resource"), texts.Draw(t, label+" fields"), texts.Draw(t, label+" list"),
	}
}

func (p parts) key(t require.TestingT) fallback.Key {
	s := &fallback.Stale{Identity: func(context.Context, fallback.Request) string { return p.user }}
	h, ok := fallback.NewCache(p.scope).Key(context.Background(), s, fallback.Request{Info: call.Info{Target: p.target, Resource: p.resource}}, true)
	require.True(t, ok)
	h.Add(p.fields...)
	h.AddList(p.list)
	return h.Key()
}

// F3: two keys are equal only if all that they are made of is: no delimiter in one
// part can look like the end of it. (A list is told from fields by its place: where
// the number of fields is open, they are to be a list.)
func TestF3_AKeyIsUnambiguous(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a, b := drawParts(t, "a"), drawParts(t, "b")
		same := a.scope == b.scope && a.user == b.user && a.target == b.target && a.resource == b.resource &&
			equal(a.fields, b.fields) && equal(a.list, b.list)
		if len(a.fields) != len(b.fields) {
			return
		}
		require.Equal(t, same, a.key(t) == b.key(t))
	})
}

func equal(a, b []string) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range a {
		if a[i] != b[i] {
			return false
		}
	}
	return true
}

// F3: who has no name has no part in the cache, and neither has one with
// credentials where the answer is everybody's. Nobody can take everybody's name.
func TestF3_WhoHasAPart(t *testing.T) {
	c := fallback.NewCache("s")
	part := func(identity func(context.Context, fallback.Request) string, credentials bool) (fallback.Key, bool, bool) {
		h, ok := c.Key(t.Context(), &fallback.Stale{Identity: identity}, fallback.Request{}, credentials)
		if !ok {
			return fallback.Key{}, false, false
		}
		return h.Key(), true, h.Shared
	}
	named := func(name string) func(context.Context, fallback.Request) string {
		return func(context.Context, fallback.Request) string { return name }
	}
	all, ok, shared := part(fallback.SharedByAll, false)
	require.True(t, ok && shared)
	_, ok, _ = part(fallback.SharedByAll, true)
	require.False(t, ok)
	_, ok, _ = part(named(""), false)
	require.False(t, ok)
	for _, name := range []string{"*", "=*", "shared", "\x00"} {
		own, ok, shared := part(named(name), true)
		require.True(t, ok && !shared)
		require.NotEqual(t, all, own)
	}
	delegates := func(ctx context.Context, r fallback.Request) string { return fallback.SharedByAll(ctx, r) }
	again, ok, shared := part(delegates, false)
	require.True(t, ok && shared)
	require.Equal(t, all, again)
}

// A cache without a scope is its owner's alone, whatever the others are called.
func TestF3_ACacheWithoutAScopeIsItsOwn(t *testing.T) {
	key := func(c *fallback.Cache) fallback.Key {
		h, _ := c.Key(t.Context(), &fallback.Stale{Identity: fallback.SharedByAll}, fallback.Request{}, false)
		return h.Key()
	}
	own := fallback.NewCache("")
	require.Equal(t, key(own), key(own))
	require.NotEqual(t, key(own), key(fallback.NewCache("")))
	require.NotEqual(t, key(own), key(fallback.NewCache("a")))
	require.Equal(t, key(fallback.NewCache("a")), key(fallback.NewCache("a")))
	require.Len(t, key(own).String(), 43)
	require.NotContains(t, key(own).String(), "=")
}

func TestMarks(t *testing.T) {
	e := fallback.Entry{Age: 90 * time.Second, Fresh: 30 * time.Second}
	require.Equal(t, "holdfast; hit; ttl=-60; detail=refused", e.CacheStatus(call.Refused))
	require.Equal(t, "90", e.AgeSeconds())
	require.True(t, fallback.MarkedBy([]string{"CDN; hit", "edge; fwd=miss, " + e.CacheStatus(call.Refused)}))
	require.True(t, fallback.MarkedBy([]string{fallback.ComputedStatus(call.TimedOut)}))
	require.False(t, fallback.MarkedBy([]string{"CDN; hit, holdfast-edge; hit", ""}))
	require.False(t, fallback.MarkedBy([]string{`edge; hit; detail="a,holdfast;b"`, `edge; detail="\",holdfast;"`}))
	require.True(t, fallback.MarkedBy([]string{`edge; detail="a,\",b", holdfast; hit`, `x`}))
	require.True(t, fallback.MarkedBy([]string{`edge; detail="a\\",holdfast; hit`}))
	require.Equal(t, "stale computed none invalid", fallback.KindStale.String()+" "+fallback.KindComputed.String()+" "+fallback.Kind(0).String()+" "+fallback.Kind(9).String())
}
