package httpmw

import (
	"context"
	"io"
	"net/http"
	"net/url"
	"slices"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/call"
	"github.com/holdfast-go/holdfast/fallback"
	"github.com/holdfast-go/holdfast/internal/answers"
	"github.com/holdfast-go/holdfast/internal/cachecontrol"
)

// keep is what a call has to do with the transport's copies of earlier answers.
type keep struct {
	transport *Transport
	policy    *fallback.Stale
	req       *http.Request
	key       answers.Key
	shared    bool // the answer is everybody's
	asks      cachecontrol.Directives
}

// keepFor returns the call's part in the cache, nil if it has none.
func (t *Transport) keepFor(c *holdfast.Call, req *http.Request) *keep {
	s := c.Stale()
	if s == nil {
		return nil
	}
	req = spelled(req)
	k := &keep{transport: t, policy: s, req: req}
	if !k.takesPart() || !k.identify(c.Info(), methodOf(req), t.hasCredentials(req.URL, req.Header)) {
		return nil
	}
	c.StaleFrom(func(ctx context.Context, after call.Class) (any, time.Duration, error) {
		resp, age, err := k.read(ctx, after)
		if resp == nil {
			return nil, 0, err
		}
		return resp, age, nil
	})
	return k
}

// bodyKeyLimit is up to how many bytes a request's body is part of the key.
const bodyKeyLimit = 64 << 10

// takesPart reports whether the request asks for a whole answer, on no condition, and
// does not forbid to keep it.
func (k *keep) takesPart() bool {
	req := k.req
	for _, name := range [...]string{"Range", "If-Range", "If-Match", "If-Unmodified-Since"} {
		if len(req.Header[name]) > 0 {
			return false // a part of the answer, or one with a condition to it
		}
	}
	var readable bool
	k.asks, readable = cachecontrol.Parse(req.Header["Cache-Control"])
	if !readable || k.asks.NoStore {
		return false
	}
	if len(req.Header["Cache-Control"]) == 0 && slices.Contains(req.Header["Pragma"], "no-cache") {
		k.asks.NoCache = true
	}
	return true
}

// identify works out the key, and reports whether there is one: somebody knows whose
// answer it is, and it depends on nothing unseen.
func (k *keep) identify(info call.Info, method string, credentials bool) bool {
	req := k.req
	body, known := bodyForKey(req)
	if !known {
		return false
	}
	h, known := k.transport.cache.Key(req.Context(), k.policy, fallback.Request{Info: info, Header: req.Header}, credentials)
	if !known {
		return false
	}
	u := *req.URL
	u.Fragment, u.RawFragment = "", "" // they are not sent
	h.Add("http", method, u.String(), req.Host)
	if body != nil {
		h.AddBytes(body)
		for _, name := range [...]string{"Content-Type", "Content-Encoding", "Content-Language"} {
			h.AddList(req.Header[name])
		}
	}
	k.key, k.shared = h.Key(), h.Shared
	return true
}

// bodyForKey returns the request's body, nil if there is none. It is known only
// if it is in memory, where reading it disturbs nobody, and not too large.
func bodyForKey(req *http.Request) (body []byte, known bool) {
	switch {
	case req.Body == nil || req.Body == http.NoBody:
		return nil, true
	case req.GetBody == nil || !inMemory(req.Body) || req.ContentLength > bodyKeyLimit:
		return nil, false
	}
	r, err := req.GetBody()
	if err != nil {
		return nil, false
	}
	defer r.Close()
	body, err = io.ReadAll(io.LimitReader(r, bodyKeyLimit+1))
	return body, err == nil && len(body) <= bodyKeyLimit
}

// hasCredentials reports whether the request says who asks.
func (t *Transport) hasCredentials(u *url.URL, h http.Header) bool {
	return u.User != nil || // net/http makes an Authorization of it
		slices.ContainsFunc(t.options.credentials(), func(name string) bool { return len(h[name]) > 0 })
}

// read returns the stale answer, nil if there is none.
func (k *keep) read(ctx context.Context, after call.Class) (*http.Response, time.Duration, error) {
	if k.asks.NoCache {
		return nil, 0, nil
	}
	e, ok, err := k.transport.cache.Get(ctx, k.policy, k.key)
	if !ok {
		return nil, 0, err
	}
	if v, varies := decodeVariants(e.Payload); varies {
		if e, ok, err = k.transport.cache.Get(ctx, k.policy, v.key(k.key, k.req.Header)); !ok {
			return nil, 0, err
		}
	}
	if k.asks.MaxAge.Set && e.Age > k.asks.MaxAge.Duration {
		return nil, 0, nil // the request asks for a younger one
	}
	resp, ok := decodeResponse(e.Payload)
	if !ok {
		return nil, 0, nil
	}
	resp.Header.Set(fallback.AgeField, e.AgeSeconds())
	resp.Header.Add(fallback.CacheStatusField, e.CacheStatus(after))
	return resp, e.Age, nil
}

// take looks at the answer that the caller gets: one that may be stored is, once
// its body has come whole, and any other of the dependency's own takes the place
// of what was stored: what is gone, or forbidden by now, must not come back.
func (k *keep) take(ctx context.Context, a *answer, class call.Class) {
	resp := a.resp
	switch {
	case class != call.OK && class != call.ClientFault:
		return // it says nothing of what was asked for
	case resp.StatusCode < 200 || resp.StatusCode == http.StatusPartialContent || resp.StatusCode == http.StatusNotModified:
		return // nor do these
	}
	e, ok := terms(resp, k.policy, k.shared, a.asked.Age())
	names := varyNames(resp.Header)
	if class != call.OK || !ok || k.changed(a.sent, names) {
		k.transport.cache.Drop(ctx, k.policy, k.key)
		return
	}
	r := &recorder{
		ReadCloser: resp.Body, want: resp.ContentLength,
		limit: k.policy.WithDefaults().MaxBody,
	}
	head, asked, since := encodeHead(resp), only(k.req.Header, names), a.asked
	r.whole = func(body []byte) {
		e := e
		e.Age += since.Age()
		e.Payload = encodeRest(head, body, resp.Trailer)
		k.put(ctx, names, asked, e, since)
	}
	switch {
	case bodyless(resp):
		r.whole(nil)
	case resp.ContentLength > int64(r.limit) || !showsItsEnd(resp):
		k.transport.cache.Drop(ctx, k.policy, k.key)
	default:
		resp.Body = r
	}
}

// changed reports whether an attempt hook has put into the request what decides
// about the answer: what the caller's own says of it does not hold then.
func (k *keep) changed(sent http.Header, names []string) bool {
	sent = canonical(sent)
	if k.shared {
		names = append(slices.Clip(names), k.transport.options.credentials()...)
	}
	for _, name := range names {
		if !slices.Equal(sent[name], k.req.Header[name]) {
			return true
		}
	}
	return false
}

// only returns a copy of some of the fields of a header.
func only(h http.Header, names []string) http.Header {
	some := make(http.Header, len(names))
	for _, name := range names {
		some[name] = slices.Clone(h[name])
	}
	return some
}

// put stores a copy, and where the answer varies with some fields of the request's
// header, which asked holds, by these. at is when it was asked for.
func (k *keep) put(ctx context.Context, names []string, asked http.Header, e answers.Entry, at answers.Stamp) {
	if len(names) == 0 {
		k.transport.cache.Put(ctx, k.policy, k.key, e, at)
		return
	}
	k.transport.cache.Aside(ctx, k.policy, k.key, at, func(f answers.Fill) {
		index, ok, err := f.Get(k.key)
		if err != nil {
			return // another index would lead to none of those that there are
		}
		v, varies := decodeVariants(index.Payload)
		if !ok || !varies || !slices.Equal(v.names, names) {
			v = newVariants(names)
		}
		// Both live as long: the index is good for at least what it leads to.
		index = e
		index.Payload = v.encode()
		if f.Put(k.key, index) == nil {
			_ = f.Put(v.key(k.key, asked), e)
		}
	})
}

// forget removes the copies of what a write may have changed (RFC 9111, section
// 4.4), as far as they can be found: those for the write's own identity, or for
// everybody, by the policies in force now, which are those of the copies that reads
// have made meanwhile.
func (x *exchange) forget(ctx context.Context) {
	table := x.transport.binding.Table() // once: the next may say otherwise
	if !table.KeepsStale() || x.call.Info().Safety == call.ReadOnly || x.call.Result().Class != call.OK {
		return
	}
	info := x.call.Begun() // the copies are found by that
	for _, method := range [...]string{http.MethodGet, http.MethodHead} {
		read := *spelled(x.req)
		read.Method, read.Body, read.GetBody = method, nil, nil
		m, name := find(table, &read)
		k := &keep{transport: x.transport, policy: m.Stale(), req: &read}
		info.Method, info.Safety = name, call.ReadOnly
		if k.policy != nil && k.identify(info, method, false) {
			k.transport.cache.Drop(ctx, k.policy, k.key)
		}
	}
}
