package telemetry

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// H4: neither users nor query values.
func TestH4_NamesAreRedacted(t *testing.T) {
	for name, want := range map[string]string{
		"":                            "",
		"db":                          "db",
		"/pkg.Service/Method":         "/pkg.Service/Method",
		"GET /items/{id}":             "GET /items/{id}",
		"dns:///db.example.com:443":   "dns:///db.example.com:443",
		"https://api.example.com":     "https://api.example.com",
		"https://u:p@api.example.com": "https://api.example.com",
		"https://u:p@api.example.com/a@b?token=x": "https://api.example.com/a@b",
		"https://a@b@api.example.com":             "https://api.example.com",
		"https://api.example.com?x=1|GET /a":      "https://api.example.com|GET /a",
		"postgres://u:p@db/orders|select":         "postgres://db/orders|select",
		"user@host":                               "user@host", // a name, not a URL's user
	} {
		require.Equal(t, want, redact(name), name)
	}
}
