// Package examples_test keeps the README and the pages in docs to what compiles
// and runs.
package examples_test

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
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

// pages returns the texts written for users, by name.
func pages(t *testing.T) map[string]string {
	t.Helper()
	names := []string{"README.md", "CONTRIBUTING.md", "SECURITY.md", "CHANGELOG.md"}
	docs, err := filepath.Glob("../docs/*.md")
	require.NoError(t, err)
	for _, name := range docs {
		names = append(names, "docs/"+filepath.Base(name))
	}
	texts := map[string]string{}
	for _, name := range names {
		texts[name] = read(t, name)
	}
	return texts
}

// blocks returns a page's code of one language.
func blocks(page, language string) []string {
	var found []string
	for _, m := range regexp.MustCompile("(?ms)^```"+language+"\n(.*?)^```$").FindAllStringSubmatch(page, -1) {
		found = append(found, m[1])
	}
	return found
}

// compiled returns the sources that a page may take its code from: the examples,
// the runnable examples of the packages' docs and the nested modules' programs.
func compiled(t *testing.T) map[string]string {
	t.Helper()
	sources := map[string]string{}
	require.NoError(t, filepath.WalkDir("..", func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && (d.Name() == ".git" || d.Name() == "testdata") {
			return filepath.SkipDir
		}
		name, err = filepath.Rel("..", name)
		if err != nil {
			return err
		}
		test := strings.HasSuffix(name, "_test.go")
		example := test && strings.HasSuffix(name, "example_test.go")
		program := strings.HasSuffix(name, ".go") && !test &&
			(strings.HasPrefix(name, "examples/") || strings.HasPrefix(name, "internal/bench/"))
		if example || program {
			sources[name] = read(t, name)
		}
		return nil
	}))
	return sources
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

func TestTheCodeOfThePagesIsThatOfTheExamples(t *testing.T) {
	sources := compiled(t)
	total := 0
	for name, page := range pages(t) {
		for _, block := range blocks(page, "go") {
			total++
			ok := false
			for _, source := range sources {
				ok = ok || contains(source, block)
			}
			require.True(t, ok, "%s: in no example:\n%s", name, block)
		}
	}
	require.GreaterOrEqual(t, total, 8)
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

func TestTheLinksOfThePagesLeadSomewhere(t *testing.T) {
	code := regexp.MustCompile("(?ms)^```.*?^```$")
	link := regexp.MustCompile(`\]\(([^)#]*)(?:#([^)]*))?\)`)
	links, anchored := 0, 0
	for name, page := range pages(t) {
		page = code.ReplaceAllString(page, "") // an index and a call look like a link
		for _, m := range link.FindAllStringSubmatch(page, -1) {
			to := name
			switch {
			case strings.Contains(m[1], "://"):
				continue
			case m[1] != "":
				to = filepath.Join(filepath.Dir(name), m[1])
			}
			links++
			_, err := os.Stat(filepath.Join("..", to))
			require.NoError(t, err, name)
			if m[2] != "" {
				anchored++
				require.Contains(t, anchors(code.ReplaceAllString(read(t, to), "")), m[2], "%s: of %s", name, to)
			}
		}
	}
	require.Greater(t, links, 50)
	require.Greater(t, anchored, 5)
}

// anchors returns what links to a page's headings name them.
func anchors(page string) []string {
	var names []string
	for _, m := range regexp.MustCompile(`(?m)^#+ (.*)$`).FindAllStringSubmatch(page, -1) {
		name := regexp.MustCompile(`[^\pL\pN _-]`).ReplaceAllString(strings.ToLower(m[1]), "")
		names = append(names, strings.ReplaceAll(name, " ", "-"))
	}
	return names
}

// table returns the rows of a page's table that begins with a heading.
func table(t *testing.T, page, heading string) []string {
	t.Helper()
	_, rest, found := strings.Cut(page, "\n"+heading)
	require.True(t, found, heading)
	var rows []string
	for line := range strings.Lines(heading + rest) {
		if !strings.HasPrefix(line, "|") {
			break
		}
		rows = append(rows, strings.TrimSpace(line))
	}
	return rows
}

// The README's outage is that of docs/outage.md, which is held to what the program
// says, in whole percents and with words for names.
func TestTheReadmesOutageIsThatOfItsPage(t *testing.T) {
	cells := func(row string) []string {
		var all []string
		for cell := range strings.SplitSeq(strings.Trim(row, "|"), "|") {
			all = append(all, strings.Trim(cell, " *"))
		}
		return all
	}
	figures := map[string][]string{}
	for _, row := range table(t, read(t, "docs/outage.md"), "| configuration |")[2:] {
		c := cells(row)
		for i := range c[1:] {
			c[i+1], _, _ = strings.Cut(c[i+1], " ") // without the article's own
		}
		share, err := strconv.ParseFloat(c[2], 64)
		require.NoError(t, err, row)
		c[2] = fmt.Sprintf("%.0f %%", 100*share)
		figures[c[0]] = c[1:]
	}
	names := map[string]string{
		"no breaker":                                             "no breaker",
		"3 attempts, no breaker":                                 "3 attempts, no breaker",
		"a breaker that counts ends":                             "breaker",
		"`CircuitBreaker(Retry(call))`":                          "CB(Retry), 3 attempts",
		"the kit, standard policy":                               "kit, standard policy",
		"the kit, attempts of 2 s and the stall rule":            "kit, 2 s, stall rule",
		"the kit, with [this policy](docs/outage.md#the-policy)": "kit, the policy below",
	}
	rows := table(t, read(t, "README.md"), "| configuration |")[2:]
	require.Len(t, rows, len(names))
	for _, row := range rows {
		c := cells(row)
		got := []string{c[1], c[2]}
		for _, seconds := range c[3:] {
			n, err := strconv.ParseFloat(strings.TrimSuffix(seconds, " s"), 64)
			if err == nil {
				seconds = fmt.Sprintf("%.1f", n)
			}
			got = append(got, seconds)
		}
		require.Equal(t, figures[names[c[0]]], got, row)
	}
}

// What stands on two pages says the same on both; the other one may say more.
func TestTablesThatStandTwiceAreTheSame(t *testing.T) {
	readme := read(t, "README.md")
	for heading, other := range map[string]string{
		"| layer | standard |":     "docs/guide.md",
		"| `errors.Is(err, …)` | ": "docs/guide.md",
		"| the call | what it ":    "docs/fallback.md",
	} {
		require.Subset(t, table(t, read(t, other), heading), table(t, readme, heading), other)
	}
}
