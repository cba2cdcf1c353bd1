package answers_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/holdfast-go/holdfast/call"
	"github.com/holdfast-go/holdfast/fallback"
	"github.com/holdfast-go/holdfast/internal/answers"
)

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

func (p parts) key(t require.TestingT) answers.Key {
	s := &fallback.Stale{Identity: func(context.Context, fallback.Request) string { return p.user }}
	h, ok := answers.NewCache(p.scope).Key(context.Background(), s, fallback.Request{Info: call.Info{Target: p.target, Resource: p.resource}}, true)
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
	c := answers.NewCache("s")
	part := func(identity func(context.Context, fallback.Request) string, credentials bool) (answers.Key, bool, bool) {
		h, ok := c.Key(t.Context(), &fallback.Stale{Identity: identity}, fallback.Request{}, credentials)
		if !ok {
			return answers.Key{}, false, false
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
	key := func(c *answers.Cache) answers.Key {
		h, _ := c.Key(t.Context(), &fallback.Stale{Identity: fallback.SharedByAll}, fallback.Request{}, false)
		return h.Key()
	}
	own := answers.NewCache("")
	require.Equal(t, key(own), key(own))
	require.NotEqual(t, key(own), key(answers.NewCache("")))
	require.NotEqual(t, key(own), key(answers.NewCache("a")))
	require.Equal(t, key(answers.NewCache("a")), key(answers.NewCache("a")))
	require.Len(t, key(own).String(), 43)
	require.NotContains(t, key(own).String(), "=")
}
