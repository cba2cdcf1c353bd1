package httpmw

import (
	"fmt"
	"net/url"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestTargetsNameTheDependency(t *testing.T) {
	var ts targets
	for address, want := range map[string]string{
		"http://API.example.com/x":        "http://api.example.com:80",
		"http://api.example.com:80":       "http://api.example.com:80",
		"http://api.example.com:/":        "http://api.example.com:80",
		"https://u:pw@api.example.com?q=": "https://api.example.com:443",
		"https://api.example.com:8443":    "https://api.example.com:8443",
		"https://[2001:DB8::1]":           "https://[2001:db8::1]:443",
		"foo://api.example.com":           "foo://api.example.com",
	} {
		u, err := url.Parse(address)
		require.NoError(t, err)
		for range 2 {
			require.Equal(t, want, ts.of(u), address)
		}
	}
}

// However many hosts are called, few are remembered, and each has its own name.
func TestTargetsAreBounded(t *testing.T) {
	var ts targets
	for n := range 3 * maxTargets {
		host := fmt.Sprintf("host%d", n)
		require.Equal(t, "http://"+host+":80", ts.of(&url.URL{Scheme: "http", Host: host}))
	}
	require.EqualValues(t, maxTargets, ts.known.Load())
	u := &url.URL{Scheme: "http", Host: "host1"}
	require.Zero(t, testing.AllocsPerRun(100, func() { ts.of(u) }))
}
