package httpmw

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"net"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/call"
)

// good reports whether a status says that the request was served.
func good(code int) bool { return 100 <= code && code < 400 }

// ofStatus classifies an answer by its status.
func ofStatus(code int) call.Result {
	res := call.Result{Code: code}
	switch code {
	case http.StatusRequestTimeout, http.StatusGatewayTimeout:
		res.Class = call.TimedOut
	case http.StatusTooManyRequests, http.StatusTooEarly:
		res.Class = call.Throttled
	case http.StatusBadGateway, http.StatusServiceUnavailable:
		res.Class = call.Unavailable
	case http.StatusNotImplemented, http.StatusHTTPVersionNotSupported:
		res.Class, res.NoRetry = call.ServerFault, true
	default:
		switch {
		case good(code):
			res.Class = call.OK
		case 400 <= code && code < 500:
			res.Class = call.ClientFault
		case 500 <= code && code < 600:
			res.Class = call.ServerFault
		default: // no status of HTTP's
			res.Class, res.NoRetry = call.ServerFault, true
		}
	}
	return res
}

// retryAfter reads the header's seconds or date (RFC 9110, section 10.2.3). What
// is broken, negative or past asks for nothing.
func retryAfter(h http.Header) time.Duration {
	v := strings.TrimSpace(h.Get("Retry-After"))
	if v == "" {
		return 0
	}
	if isDigits(v) {
		seconds, err := strconv.ParseInt(v, 10, 64)
		if limit := int64(maxDuration / time.Second); err != nil || seconds > limit {
			return maxDuration // longer than anybody waits
		}
		return time.Duration(seconds) * time.Second
	}
	date, err := http.ParseTime(v)
	if err != nil {
		return 0
	}
	return max(time.Until(date), 0)
}

const maxDuration time.Duration = 1<<63 - 1

func isDigits(s string) bool {
	return !strings.ContainsFunc(s, func(r rune) bool { return r < '0' || r > '9' })
}

// ofError classifies an attempt that brought no answer. sent says what a trace
// knows about it.
func ofError(err error, scheme string, sent sent) call.Result {
	res := call.Result{Class: call.Unavailable, Err: err}
	res.NotSent = sent == sentNothing || isRefusedStream(err) || sent != sentSomething && provesNotSent(err)
	if holdfast.Refused(err) {
		return call.Result{Class: call.Refused, Err: err, NotSent: true}
	}
	if isCertificate(err) || !isHTTP(scheme) && isUnservedScheme(err) {
		res.Class = call.Permanent
	}
	return res
}

// isCertificate reports whether the server's certificate was refused: no repeat
// will make it good.
func isCertificate(err error) bool {
	return isA[*tls.CertificateVerificationError](err) || isA[x509.UnknownAuthorityError](err) ||
		isA[x509.HostnameError](err) || isA[x509.CertificateInvalidError](err)
}

func isA[E error](err error) bool {
	_, is := errors.AsType[E](err)
	return is
}

// isUnservedScheme reports whether nobody has registered the URL's scheme with the
// base transport. net/http has only a text for that.
func isUnservedScheme(err error) bool {
	return strings.HasPrefix(err.Error(), "unsupported protocol scheme")
}

// provesNotSent reports whether an error of this type arises only before the
// request is written.
func provesNotSent(err error) bool {
	if op, ok := errors.AsType[*net.OpError](err); ok && op.Op == "dial" {
		return true
	}
	return isA[tls.RecordHeaderError](err) || isCertificate(err)
}

// isRefusedStream reports whether the server says that it has not processed what was
// sent. net/http has repeated the request by itself then, and only while no server
// had processed it.
func isRefusedStream(err error) bool {
	stream, ok := errors.AsType[streamError](err)
	return ok && stream.Code == refusedStream
}

// streamError receives the HTTP/2 stream error of net/http, which fills any
// struct of this shape.
type streamError struct {
	StreamID uint32
	Code     uint32
	Cause    error
}

func (e streamError) Error() string {
	return "httpmw: HTTP/2 stream error " + strconv.Itoa(int(e.Code))
}

// refusedStream is the HTTP/2 error code by which a server says that it has not
// processed a stream (RFC 9113, section 8.7).
const refusedStream = 7
