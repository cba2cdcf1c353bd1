package grpcmw

import (
	"math"
	"math/big"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/metadata"

	"github.com/holdfast-go/holdfast/call"
	"github.com/holdfast-go/holdfast/internal/wire/grpcwire"
)

// D040: whatever a server says in its pushback, it is a wait in milliseconds, said
// once, or no repeat.
func FuzzPushback(f *testing.F) {
	for _, seed := range []string{"", "0", "-1", "+5", "1500", "007", "1e3", "0x10", "1_000", " 1", "9223372036854", "9223372036855", "9223372036854775808"} {
		f.Add(seed, "")
		f.Add(seed, seed)
	}
	number := regexp.MustCompile(`^[+-]?[0-9]+$`)
	f.Fuzz(func(t *testing.T, one, two string) {
		values := []string{one}
		if two != "" {
			values = append(values, two)
		}
		res := pushedBack(call.Result{Class: call.Unavailable}, evidence{trailer: metadata.MD{pushback: values}})
		n, ok := new(big.Int).SetString(strings.TrimPrefix(one, "+"), 10)
		if two != "" || !number.MatchString(one) || !ok || n.Sign() < 0 || !n.IsInt64() {
			require.Equal(t, call.Result{Class: call.Unavailable, NoRetry: true}, res)
			return
		}
		want := time.Duration(math.MaxInt64)
		if n.Cmp(big.NewInt(math.MaxInt64/int64(time.Millisecond))) <= 0 {
			want = time.Duration(n.Int64()) * time.Millisecond
		}
		require.Equal(t, call.Result{Class: call.Unavailable, RetryAfter: want, Exact: true}, res)
	})
}

// G2: a name that is taken is in canonical form then, and means the same with the
// leading slash and without.
func FuzzNames(f *testing.F) {
	for _, seed := range []string{
		"", "/", "//", "pkg.Service", "/pkg.Service", "pkg.Service/", "pkg.Service/Method", "/pkg.Service/Method", "/pkg.Service/Method/", "/a/b/c",
		".", "a..b", "a.", "/grpc.testing.TestService/EmptyCall", "/grpc.testing.TestService/None", "grpc.testing.Payload", "grpc.testing.TestService.EmptyCall",
		"/a-b.c_d/E", "/pkg.Sérvice/M", "/pkg.Service/M\x00", " /pkg.Service/M",
	} {
		f.Add(seed)
	}
	form := regexp.MustCompile(`^(/[A-Za-z0-9_.-]+/[A-Za-z0-9_-]+|[A-Za-z0-9_.-]+)$`)
	f.Fuzz(func(t *testing.T, name string) {
		key, err := parseName(name)
		_, _, _, found := find(name, func(k string) bool { return k == key }, nil)
		if err != nil {
			require.False(t, found, "what is no name is not found")
			return
		}
		require.Regexp(t, form, key)
		again, err := parseName(key)
		require.NoError(t, err)
		require.Equal(t, key, again)
		require.Equal(t, grpcwire.ServiceOf(key) != "", found)
		if grpcwire.ServiceOf(key) != "" {
			bare, err := parseName(key[1:])
			require.NoError(t, err)
			require.Equal(t, key, bare)
			service := grpcwire.ServiceOf(key)
			require.Equal(t, []string{service}, protocol.Broader([]string{key, service})(key))
		}
	})
}

// Any name may come in an RPC: its service is what stands between its first byte, which
// is a slash in good order, and its last slash; and what has no form of a method's
// declares nothing.
func FuzzNamesOfRPCs(f *testing.F) {
	for _, seed := range []string{"", "/", "//", "/a", "a/b", "/pkg.Service/Method", "/grpc.testing.TestService/EmptyCall", "/grpc.testing.TestService/None",
		"/grpc.testing.Payload/body", "/grpc.testing/TestService", "/a/b/c", "\x00/\xff"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, name string) {
		if service := grpcwire.ServiceOf(name); service != "" {
			method, ok := strings.CutPrefix(name[1:], service+"/")
			require.True(t, ok)
			require.NotContains(t, method, "/")
		}
		if s := declaredSafety(name); s != call.SafetyUnknown {
			_, err := parseName(name)
			require.NoError(t, err, "only what has the form of a method declares anything")
		}
	})
}

// A length of time in a service config is its number of seconds, of at most nine
// decimals, or is refused.
func FuzzSeconds(f *testing.F) {
	for _, seed := range []string{"", "s", ".s", "1s", "1.5s", "-1s", "0s", "0.000000001s", "0.0000000001s", "1.s", ".5s", "01s", "+1s", "1e3s", "1.2.3s", "9223372036.854775807s", "9223372036.854775808s", "315576000001s"} {
		f.Add(seed)
	}
	form := regexp.MustCompile(`^([0-9]+\.?[0-9]{0,9}|\.[0-9]{1,9})s$`)
	f.Fuzz(func(t *testing.T, text string) {
		got, ok := parseSeconds(text)
		if !form.MatchString(text) {
			require.False(t, ok)
			return
		}
		seconds, isNumber := new(big.Rat).SetString(strings.TrimSuffix(strings.TrimSuffix(text, "s"), "."))
		require.True(t, isNumber)
		nanos := new(big.Rat).Mul(seconds, big.NewRat(int64(time.Second), 1))
		require.True(t, nanos.IsInt())
		require.Equal(t, nanos.Num().IsInt64(), ok, "as long as it can be held")
		if ok {
			require.Equal(t, nanos.Num().Int64(), int64(got))
		}
	})
}
