package httpmw

import (
	"fmt"
	"net/http"
	"slices"

	"github.com/holdfast-go/holdfast/call"
	"github.com/holdfast-go/holdfast/internal/check"
	"github.com/holdfast-go/holdfast/internal/credential"
)

// defaultBufferLimit is how much of a request body that has no GetBody is kept
// for a repeat, in bytes.
const defaultBufferLimit = 64 << 10

// Option configures a [Transport]. The functions of this package that return one
// make it; the zero Option is an error.
type Option struct {
	apply func(*options, *check.Faults)
}

type options struct {
	bufferLimit int64
	classifier  func(*http.Response, error, call.Result) call.Result
	prepare     func(*http.Request, int) error
	numberIn    string // header for the attempt's number, "" for none
	finalBy     string // header that forbids a repeat, "" for none
	onPanic     func(method string, value any, stack []byte)
	onTooLong   func(method string, limit int64)
	first       func(resp *http.Response, read []byte) bool
	asksOn      map[int]bool // statuses on which Retry-After is read
	front       string       // base URL of the requests to several upstreams, "" for the first's
	secret      []string     // headers that hold credentials
	cacheScope  string       // whose copies the stale answers are, "" for the transport's own
}

// collect reads the options; failover says that they are for Failover.
func collect(opts []Option, failover bool) (options, error) {
	o := options{bufferLimit: defaultBufferLimit, asksOn: map[int]bool{
		http.StatusTooEarly: true, http.StatusTooManyRequests: true, http.StatusServiceUnavailable: true,
	}}
	var faults check.Faults
	for i, opt := range opts {
		if opt.apply == nil {
			faults.Add(fmt.Sprintf("Option[%d]", i), nil, "is the zero Option")
			continue
		}
		opt.apply(&o, &faults)
	}
	if o.front != "" && !failover {
		faults.Add("WithFront", nil, "is for Failover")
	}
	return o, faults.Err("httpmw")
}

// credentials returns the fields that hold the caller's credentials.
func (o *options) credentials() []string {
	if len(o.secret) == 0 {
		return credentialHeaders
	}
	return slices.Concat(credentialHeaders, o.secret)
}

// credentialHeaders are the fields that hold what must not reach somebody else.
var credentialHeaders = func() []string {
	fields := append(credential.Fields(), "www-authenticate")
	for i, name := range fields {
		fields[i] = http.CanonicalHeaderKey(name)
	}
	return fields
}()

// WithBufferLimit sets how many bytes of a request body without GetBody are kept
// while they are sent, so that the request can be repeated. A longer body gets
// one attempt. 0 keeps nothing. It holds for requests that may be repeated;
// of others nothing is kept. The default is 64 KiB.
func WithBufferLimit(bytes int64) Option {
	return Option{func(o *options, faults *check.Faults) {
		if bytes < 0 {
			faults.Add("WithBufferLimit", bytes, "must not be negative")
		}
		o.bufferLimit = bytes
	}}
}

// WithBodyTooLongHook sets a function that is told when a failed attempt is not
// repeated only because more of its body was sent than the buffer limit lets the
// kit keep. method is the route, as metrics name it.
func WithBodyTooLongHook(tell func(method string, limit int64)) Option {
	return Option{func(o *options, faults *check.Faults) {
		if tell == nil {
			faults.Add("WithBodyTooLongHook", nil, "must not be nil")
		}
		o.onTooLong = tell
	}}
}

// WithFirstMessage sets what counts as the first message of a response body, for
// Timeout.FirstMessage: arrived is asked after each piece, with all that was read
// so far, and says whether the message is there. It sees at most 64 KiB; a body
// that is longer, or ends, has arrived. Without it the first byte counts. See
// [FirstEvent].
func WithFirstMessage(arrived func(resp *http.Response, read []byte) bool) Option {
	return Option{func(o *options, faults *check.Faults) {
		if arrived == nil {
			faults.Add("WithFirstMessage", nil, "must not be nil")
		}
		o.first = arrived
	}}
}

// WithRetryAfterOn adds statuses on which the header Retry-After is heeded. By
// default these are 425, 429 and 503.
func WithRetryAfterOn(statuses ...int) Option {
	return Option{func(o *options, faults *check.Faults) {
		for _, status := range statuses {
			if status < 400 || status > 599 {
				faults.Add("WithRetryAfterOn", status, "is no status of a failure, 400 to 599")
			}
			o.asksOn[status] = true
		}
	}}
}

// WithClassifier sets a function that amends the verdict on an attempt and sees
// its response, or the error if there is none. It may read the response's
// header, but not its body. It runs before the policy's Classify. If it panics
// the attempt counts as a failure and the panic goes on.
func WithClassifier(classify func(*http.Response, error, call.Result) call.Result) Option {
	return Option{func(o *options, faults *check.Faults) {
		if classify == nil {
			faults.Add("WithClassifier", nil, "must not be nil")
		}
		o.classifier = classify
	}}
}

// WithAttemptHook sets a function that is given each attempt's own copy of the
// request before it is sent, with the attempt's number from 1: to sign it anew,
// for instance. It may change the copy's header, and nothing else; the caller's
// request and the other attempts do not see it. Its error ends the call.
func WithAttemptHook(prepare func(req *http.Request, attempt int) error) Option {
	return Option{func(o *options, faults *check.Faults) {
		if prepare == nil {
			faults.Add("WithAttemptHook", nil, "must not be nil")
		}
		o.prepare = prepare
	}}
}

// WithAttemptNumberHeader sends with every repeat, in the header named, how many
// attempts came before it, so that the server can tell repeats from new work.
func WithAttemptNumberHeader(name string) Option {
	return Option{func(o *options, faults *check.Faults) {
		o.numberIn = headerName("WithAttemptNumberHeader", name, faults)
	}}
}

// WithNoRetryHeader names a response header by which the server forbids a repeat
// of an answer that otherwise would be repeated, whatever its value.
func WithNoRetryHeader(name string) Option {
	return Option{func(o *options, faults *check.Faults) {
		o.finalBy = headerName("WithNoRetryHeader", name, faults)
	}}
}

// WithPanicHandler sets a function that is told of a panic where it cannot go on to
// the caller: in a hook of the breaker's when a body that nobody reads any more ends
// with its request's context, or in a body of the base transport's while the kit reads
// what is left of a failed answer, aside from the call. Without it the panic goes on
// from the body's next Read or Close, and from the call itself if that waits for what
// is read; of an answer that was given up nobody learns then. method is the route, as
// metrics name it. The function must not panic.
func WithPanicHandler(handle func(method string, value any, stack []byte)) Option {
	return Option{func(o *options, faults *check.Faults) {
		if handle == nil {
			faults.Add("WithPanicHandler", nil, "must not be nil")
		}
		o.onPanic = handle
	}}
}

// WithFront sets the base URL that stands for all upstreams of [Failover] in the
// requests' URLs, such as "http://llm" where none of them is to be named. A request
// for the front's URL and more goes to an upstream's URL and the same more; any other
// is an error, and is not sent. Without it the front is the first upstream's URL.
//
// A redirect to a place below the upstream that answers comes back as one to the same
// place below the front, so that a client that follows it comes here again. Any other
// redirect comes back with the place in full, and a client that follows it gets the
// error, unless it uses another transport for such places.
//
// The caller's Host goes along only if it differs from the URL's.
func WithFront(url string) Option {
	return Option{func(o *options, faults *check.Faults) {
		if _, err := parsePlace(url); err != nil {
			faults.Add("WithFront", nil, "%v", err)
		}
		o.front = url
	}}
}

// WithCredentialHeaders adds header fields to those that [Failover] and the stale
// answers of fallback.SharedByAll take for the caller's credentials: Authorization,
// Proxy-Authorization, Www-Authenticate, Cookie, Cookie2, Api-Key, X-Api-Key,
// X-Auth-Token, X-Csrf-Token, X-Goog-Api-Key and X-Amz-Security-Token. See
// Upstream.Credentials.
func WithCredentialHeaders(names ...string) Option {
	return Option{func(o *options, faults *check.Faults) {
		for _, name := range names {
			o.secret = append(o.secret, headerName("WithCredentialHeaders", name, faults))
		}
	}}
}

// WithCacheScope lets the transport share its stale answers with all others of the
// same scope and store: with those of other processes, or of this program before
// it was started anew. Without it they are the transport's own. Only transports
// that may see each other's answers may share a scope: not those with different
// client certificates, or with base transports that sign for different users. The
// scope may not be empty.
func WithCacheScope(scope string) Option {
	return Option{func(o *options, faults *check.Faults) {
		if scope == "" {
			faults.Add("WithCacheScope", nil, "must not be empty")
		}
		o.cacheScope = scope
	}}
}

func headerName(option, name string, faults *check.Faults) string {
	if !isToken(name) {
		faults.Add(option, fmt.Sprintf("%q", name), "is no header name")
	}
	return http.CanonicalHeaderKey(name)
}
