package depstest_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// Every rule and every field case that the docs promise has a test which carries
// its number, in its name or in a comment.
func TestEveryRuleAndCaseHasATestThatNamesIt(t *testing.T) {
	const root = "../.."
	var tests strings.Builder
	require.NoError(t, filepath.WalkDir(root, func(name string, d fs.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(name, "_test.go") || strings.HasSuffix(name, "proofs_test.go") {
			return err
		}
		text, err := os.ReadFile(name)
		tests.Write(text)
		return err
	}))

	named := map[string]bool{}
	for _, id := range regexp.MustCompile(`\b(?:Test)?([A-Z]\d+)(?:\b|_)`).FindAllStringSubmatch(tests.String(), -1) {
		named[id[1]] = true
	}
	for page, line := range map[string]string{"rules.md": `(?m)^- ([A-Z]\d+) `, "cases.md": `(?m)^\| (D\d+) `} {
		text, err := os.ReadFile(filepath.Join(root, "docs", page))
		require.NoError(t, err)
		promised := regexp.MustCompile(line).FindAllStringSubmatch(string(text), -1)
		require.Greater(t, len(promised), 50, page)
		for _, id := range promised {
			if !named[id[1]] {
				t.Errorf("docs/%s: no test names %s", page, id[1])
			}
		}
	}
}
