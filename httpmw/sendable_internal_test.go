package httpmw

import (
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// The tables say of bytes what the grammars say of characters.
func TestTheTablesAreTheGrammars(t *testing.T) {
	const letters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
	token := func(r rune) bool { return strings.ContainsRune(letters+"!#$%&'*+-.^_`|~", r) }
	host := func(r rune) bool { return r > ' ' && r != 0x7f && !strings.ContainsRune(`/?#@\"<>`, r) }
	value := func(r rune) bool { return r >= ' ' && r != 0x7f || r == '\t' }
	all := func(s string, is func(rune) bool) bool {
		return !strings.ContainsFunc(s, func(r rune) bool { return !is(r) })
	}
	same := func(t require.TestingT, s string) {
		require.Equal(t, s != "" && all(s, token), isToken(s), "%q", s)
		require.Equal(t, all(s, host), !notInHost.anyOf(s), "%q", s)
		require.Equal(t, all(s, value), !notInValue.anyOf(s), "%q", s)
	}
	for r := range rune(utf8.RuneSelf * 4) {
		same(t, string(r))
	}
	rapid.Check(t, func(t *rapid.T) { same(t, rapid.String().Draw(t, "s")) })
}
