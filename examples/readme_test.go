// Package examples_test keeps the README to what compiles and runs.
package examples_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func read(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("..", name))
	require.NoError(t, err)
	return string(text)
}

// blocks returns the README's code of one language.
func blocks(readme, language string) []string {
	var found []string
	for _, m := range regexp.MustCompile("(?ms)^```"+language+"\n(.*?)^```$").FindAllStringSubmatch(readme, -1) {
		found = append(found, m[1])
	}
	return found
}

// contains reports whether whole lines of the source, indented alike, are the
// lines of the block.
func contains(source, block string) bool {
	for indent := range 5 {
		tabs := strings.Repeat("\t", indent)
		var b strings.Builder
		for line := range strings.Lines(block) {
			if line != "\n" {
				line = tabs + line
			}
			b.WriteString(line)
		}
		if strings.Contains("\n"+source, "\n"+b.String()) {
			return true
		}
	}
	return false
}

func TestTheReadmesCodeIsThatOfTheExamples(t *testing.T) {
	sources := map[string]string{"example_test.go": read(t, "example_test.go")}
	require.NoError(t, filepath.WalkDir(".", func(name string, _ fs.DirEntry, err error) error {
		if err == nil && strings.HasSuffix(name, ".go") && !strings.HasSuffix(name, "_test.go") {
			sources[name] = read(t, filepath.Join("examples", name))
		}
		return err
	}))
	found := blocks(read(t, "README.md"), "go")
	require.GreaterOrEqual(t, len(found), 8)
	for _, block := range found {
		ok := false
		for _, source := range sources {
			ok = ok || contains(source, block)
		}
		require.True(t, ok, "in no example:\n%s", block)
	}
}

func TestAChangedLineIsNoticed(t *testing.T) {
	const source = "func f() {\n\tkit, err := New()\n\n\tuse(kit)\n}\n"
	for block, want := range map[string]bool{
		"kit, err := New()\n\nuse(kit)\n": true,
		"use(kit)\n":                      true,
		"kit, err := New()\nuse(kit)\n":   false,
		"kit, err := New(nil)\n":          false,
		"err := New()\n":                  false, // not a whole line
	} {
		require.Equal(t, want, contains(source, block), block)
	}
}

func TestTheReadmeNamesTheTwoCommands(t *testing.T) {
	var lines []string
	for _, block := range blocks(read(t, "README.md"), "sh") {
		lines = append(lines, strings.Split(block, "\n")...)
	}
	require.Contains(t, lines, "go run ./examples/quickstart")
	require.Contains(t, lines, "go test ./...")
}

func TestTheReadmesLinksLeadSomewhere(t *testing.T) {
	for _, m := range regexp.MustCompile(`\]\(([^)#]+)\)`).FindAllStringSubmatch(read(t, "README.md"), -1) {
		if !strings.Contains(m[1], "://") {
			_, err := os.Stat(filepath.Join("..", m[1]))
			require.NoError(t, err)
		}
	}
}
