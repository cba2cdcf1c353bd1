package policyfile

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// The files shown to users load.
func TestTheFilesOfTheDocsLoad(t *testing.T) {
	page, err := os.ReadFile("../docs/policies.md")
	require.NoError(t, err)
	found := regexp.MustCompile("(?ms)^```yaml\n(.*?)^```$").FindAllSubmatch(page, -1)
	require.Len(t, found, 2)
	for _, m := range found {
		_, err := load(m[1])
		require.NoError(t, err, "%s", m[1])
	}

	comment, err := os.ReadFile("doc.go")
	require.NoError(t, err)
	var shown strings.Builder
	for line := range strings.Lines(string(comment)) {
		if code, ok := strings.CutPrefix(line, "//\t"); ok {
			shown.WriteString(code)
		}
	}
	f, err := Load(strings.NewReader(shown.String()))
	require.NoError(t, err)
	require.Len(t, f.Methods, 2)
}
