package answers_test

import (
	"context"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/holdfast-go/holdfast/call"
	"github.com/holdfast-go/holdfast/fallback"
	"github.com/holdfast-go/holdfast/internal/answers"
)

// parts is all that a key is made of: scope, user, target and resource, a field more,
// and two lists.
type parts struct {
	fields []string
	lists  [2][]string
}

func (p parts) key(t require.TestingT) answers.Key {
	s := &fallback.Stale{Identity: func(context.Context, fallback.Request) string { return p.fields[1] }}
	info := call.Info{Target: p.fields[2], Resource: p.fields[3]}
	h, ok := answers.NewCache(p.fields[0]).Key(context.Background(), s, fallback.Request{Info: info}, true)
	require.True(t, ok)
	h.Add(p.fields[4:]...)
	for _, list := range p.lists {
		h.AddList(list)
	}
	return h.Key()
}

func (p parts) equal(q parts) bool {
	return slices.Equal(p.fields, q.fields) && slices.Equal(p.lists[0], q.lists[0]) && slices.Equal(p.lists[1], q.lists[1])
}

// like returns parts that look much like p: one text is another, or two neighbours'
// texts are cut at another place.
func (p parts) like(t *rapid.T, text *rapid.Generator[string]) parts {
	q := parts{slices.Clone(p.fields), [2][]string{slices.Clone(p.lists[0]), slices.Clone(p.lists[1])}}
	cut := func(list []string, at int) {
		mark := rapid.SampledFrom([]string{"", "|", "=", "\x00"}).Draw(t, "mark")
		joined := list[at] + mark + list[at+1]
		var ends []int
		for i := range len(joined) - len(mark) + 1 {
			if joined[i:i+len(mark)] == mark {
				ends = append(ends, i)
			}
		}
		end := rapid.SampledFrom(ends).Draw(t, "end")
		list[at], list[at+1] = joined[:end], joined[end+len(mark):]
	}
	at := func(list []string, but int) int { return rapid.IntRange(0, len(list)-1-but).Draw(t, "at") }
	switch first, second := q.lists[0], q.lists[1]; rapid.SampledFrom([]string{"same", "field", "cut", "item", "cut list", "move"}).Draw(t, "step") {
	case "field":
		q.fields[at(q.fields, 0)] = text.Draw(t, "new")
	case "cut":
		cut(q.fields, at(q.fields, 1))
	case "item":
		if len(first) > 0 {
			first[at(first, 0)] = text.Draw(t, "new")
		}
	case "cut list":
		if len(first) > 1 {
			cut(first, at(first, 1))
		}
	case "move":
		if len(first) > 0 {
			q.lists = [2][]string{first[:len(first)-1], slices.Insert(second, 0, first[len(first)-1])}
		}
	}
	return q
}

// F3: two keys are equal only if all that they are made of is: no delimiter in one
// part can look like the end of it. (A list is told from fields by its place: where
// the number of fields is open, they are to be a list.)
func TestF3_AKeyIsUnambiguous(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.StringOfN(rapid.RuneFrom([]rune("ab|=*\x00")), 1, 3, -1)
		list := rapid.SliceOfN(text, 0, 3)
		a := parts{rapid.SliceOfN(text, 5, 5).Draw(t, "fields"), [2][]string{list.Draw(t, "list"), list.Draw(t, "more")}}
		b := a.like(t, text)
		if b.fields[0] == "" || b.fields[1] == "" {
			return // no scope, or nobody
		}
		require.Equal(t, a.equal(b), a.key(t) == b.key(t), "%q, %q", a, b)
	})
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
