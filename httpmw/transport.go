package httpmw

import (
	"net/http"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/call"
	"github.com/holdfast-go/holdfast/internal/answers"
	"github.com/holdfast-go/holdfast/internal/wire/httpwire"
)

// Transport is an http.RoundTripper that makes every request by the policies of
// a kit. It keeps the RoundTripper contract: the caller's request is not
// changed and its body is always closed, and a response is returned whatever its
// status, readable from its first byte. It is safe for concurrent use.
type Transport struct {
	base    http.RoundTripper
	binding *holdfast.Binding
	targets targets
	cache   *answers.Cache
	options options

	failover *failover // nil if requests go where they say
}

// New returns a Transport over base; nil is http.DefaultTransport. The error
// names every entry of the kit's table that is no pattern in http.ServeMux's
// syntax, and every bad option.
func New(base http.RoundTripper, k *holdfast.Kit, opts ...Option) (*Transport, error) {
	o, err := collect(opts, false)
	if err != nil {
		return nil, err
	}
	return newTransport(base, k, o)
}

func newTransport(base http.RoundTripper, k *holdfast.Kit, o options) (*Transport, error) {
	binding, err := k.Bind(protocol)
	if err != nil {
		return nil, err
	}
	if base == nil {
		base = http.DefaultTransport
	}
	return &Transport{base: base, binding: binding, options: o, cache: answers.NewCache(o.cacheScope)}, nil
}

// NewTransport is [New] for a table that is known to be right, such as a literal
// in the program. It panics if it is not, as regexp.MustCompile does.
func NewTransport(base http.RoundTripper, k *holdfast.Kit, opts ...Option) *Transport {
	t, err := New(base, k, opts...)
	if err != nil {
		panic(err)
	}
	return t
}

// RoundTrip makes the call. See the package's documentation for what ends its
// limits and what is retried.
func (t *Transport) RoundTrip(req *http.Request) (*http.Response, error) {
	keyed, err := sendable(req)
	if err != nil {
		closeBody(req)
		return nil, err
	}
	method, name := find(t.binding.Table(), req)
	info := call.Info{Method: name, Safety: httpwire.Safety(req.Method)}
	if f := t.failover; f == nil {
		info.Target = t.targets.of(req.URL)
	} else if err := f.covers(req.URL); err != nil {
		closeBody(req)
		return nil, err
	}
	var x exchange
	x.transport, x.req = t, req
	ctx, err := x.begin(method, info, keyed)
	if err != nil {
		return nil, err
	}
	if x.call.Hedged() {
		racing := x.apart()
		return racing.run(ctx, racing.race)
	}
	return x.run(ctx, x.attempt)
}

// CloseIdleConnections forwards to the base transport.
func (t *Transport) CloseIdleConnections() {
	if base, ok := t.base.(interface{ CloseIdleConnections() }); ok {
		base.CloseIdleConnections()
	}
}

func closeBody(req *http.Request) {
	if req != nil && req.Body != nil {
		req.Body.Close()
	}
}
