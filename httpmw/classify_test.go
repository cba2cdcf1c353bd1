package httpmw

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"math/big"
	"net"
	"net/http"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-go/holdfast/call"
)

// D020: every status has its class; the table is the documentation.
func TestD020_EveryStatusHasItsClass(t *testing.T) {
	special := map[int]call.Result{
		408: {Class: call.TimedOut}, 504: {Class: call.TimedOut},
		425: {Class: call.Throttled}, 429: {Class: call.Throttled},
		502: {Class: call.Unavailable}, 503: {Class: call.Unavailable},
		501: {Class: call.ServerFault, NoRetry: true}, 505: {Class: call.ServerFault, NoRetry: true},
	}
	for code := range 1000 {
		want, found := special[code]
		if !found {
			switch {
			case code >= 100 && code < 400:
				want.Class = call.OK
			case code >= 400 && code < 500:
				want.Class = call.ClientFault
			case code >= 500 && code < 600:
				want.Class = call.ServerFault
			default:
				want = call.Result{Class: call.ServerFault, NoRetry: true}
			}
		}
		want.Code = code
		require.Equal(t, want, ofStatus(code), code)
	}
}

// D039: seconds and dates are read, what is broken asks for nothing, and what is
// absurd is longer than any cap.
func TestD039_RetryAfterIsReadInBothForms(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for value, want := range map[string]time.Duration{
			"3":  3 * time.Second,
			" 3": 3 * time.Second,
			"0":  0,
			"-1": 0, "abc": 0, "": 0, "1.5": 0,
			"9999999999":              maxDuration,
			"99999999999999999999999": maxDuration,
			time.Now().Add(5 * time.Second).UTC().Format(http.TimeFormat):       5 * time.Second,
			time.Now().Add(-5 * time.Second).UTC().Format(http.TimeFormat):      0,
			time.Date(2099, 1, 1, 0, 0, 0, 0, time.UTC).Format(time.RFC850):     0, // two digits of a year: read as the past
			time.Date(2099, 1, 1, 0, 0, 0, 0, time.UTC).Format(http.TimeFormat): time.Until(time.Date(2099, 1, 1, 0, 0, 0, 0, time.UTC)),
		} {
			require.Equal(t, want, retryAfter(http.Header{"Retry-After": {value}}), "%q", value)
		}
	})
}

func FuzzRetryAfter(f *testing.F) {
	for _, seed := range []string{
		"", "3", "  3\t", "-1", "+1", "1.5", "0x10", "soon", "9223372036", "9223372037", "9223372036854775807", "9223372036854775808",
		"Fri, 31 Dec 1999 23:59:59 GMT", "Thu, 01 Jan 2099 00:00:00 GMT", "Thursday, 01-Jan-99 00:00:00 GMT", "Thu Jan  1 00:00:00 2099", "Thu, 01 Jan 9999 00:00:00 UTC",
	} {
		f.Add(seed)
	}
	digits := regexp.MustCompile(`^[0-9]+$`)
	f.Fuzz(func(t *testing.T, value string) {
		text, before := strings.TrimSpace(value), time.Now()
		got := retryAfter(http.Header{"Retry-After": {value}})
		at, err := http.ParseTime(text)
		switch {
		case digits.MatchString(text):
			want := maxDuration
			if n, ok := new(big.Int).SetString(text, 10); ok && n.Cmp(big.NewInt(int64(maxDuration/time.Second))) <= 0 {
				want = time.Duration(n.Int64()) * time.Second
			}
			require.Equal(t, want, got)
		case err == nil:
			require.LessOrEqual(t, got, max(0, at.Sub(before)))
			require.GreaterOrEqual(t, got, max(0, time.Until(at)))
		default:
			require.Zero(t, got)
		}
	})
}

// What an error proves, by its type and never by its text.
func TestErrorsAreClassifiedByType(t *testing.T) {
	dial := &net.OpError{Op: "dial", Err: syscall.ECONNREFUSED}
	read := &net.OpError{Op: "read", Err: syscall.ECONNRESET}
	for name, tc := range map[string]struct {
		err     error
		scheme  string
		sent    sent
		class   call.Class
		notSent bool
	}{
		"dial refused":                 {dial, "http", sentUnknown, call.Unavailable, true},
		"dial refused, wrapped":        {fmt.Errorf("proxy: %w", dial), "http", sentUnknown, call.Unavailable, true},
		"no such host":                 {&net.OpError{Op: "dial", Err: &net.DNSError{}}, "https", sentUnknown, call.Unavailable, true},
		"connection reset":             {read, "http", sentUnknown, call.Unavailable, false},
		"EOF":                          {io.EOF, "http", sentUnknown, call.Unavailable, false},
		"EOF in the handshake, traced": {io.EOF, "https", sentNothing, call.Unavailable, true},
		"EOF after writing, traced":    {io.EOF, "https", sentSomething, call.Unavailable, false},
		"TLS alert":                    {&net.OpError{Op: "remote error", Err: errors.New("tls")}, "https", sentUnknown, call.Unavailable, false},
		"unknown authority":            {x509.UnknownAuthorityError{}, "https", sentUnknown, call.Permanent, true},
		"certificate verification":     {&tls.CertificateVerificationError{Err: x509.HostnameError{Certificate: &x509.Certificate{}}}, "https", sentUnknown, call.Permanent, true},
		"expired":                      {x509.CertificateInvalidError{}, "https", sentUnknown, call.Permanent, true},
		"a plain server":               {tls.RecordHeaderError{}, "https", sentUnknown, call.Unavailable, true},
		"stream refused":               {streamError{Code: 7}, "https", sentUnknown, call.Unavailable, true},
		"stream reset":                 {streamError{Code: 2}, "https", sentUnknown, call.Unavailable, false},
		"a timeout of the transport's": {context.DeadlineExceeded, "http", sentUnknown, call.Unavailable, false},
		"a scheme nobody serves":       {errors.New("unsupported protocol scheme"), "foo", sentUnknown, call.Permanent, false},
		"a scheme somebody serves":     {dial, "foo", sentUnknown, call.Unavailable, true},
		"cut off, another scheme":      {io.ErrUnexpectedEOF, "foo", sentUnknown, call.Unavailable, false},
		"clear text after writing":     {tls.RecordHeaderError{}, "https", sentSomething, call.Unavailable, false},
		"a certificate after writing":  {x509.UnknownAuthorityError{}, "https", sentSomething, call.Permanent, false},
		"a dial inside a connection":   {dial, "http", sentSomething, call.Unavailable, false},
		"anything else":                {errors.New("?"), "http", sentUnknown, call.Unavailable, false},
	} {
		t.Run(name, func(t *testing.T) {
			require.Equal(t, call.Result{Class: tc.class, Err: tc.err, NotSent: tc.notSent}, ofError(tc.err, tc.scheme, tc.sent))
		})
	}
}
