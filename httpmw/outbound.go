package httpmw

import (
	"context"
	"maps"
	"net/http"
	"slices"
	"strconv"

	"github.com/holdfast-go/holdfast"
)

// outbound is what the base transport is given of an attempt, and may keep for longer
// than the call lasts: the request and its contexts, in one piece.
type outbound struct {
	request http.Request
	room    holdfast.Room
}

// request returns the request to send, with a body of the attempt's own. passes says
// that the context is the caller's own.
func (l *lane) request(x *exchange, held context.Context, passes bool) (_ *http.Request, err error) {
	u := &x.upload
	switch {
	case u.empty():
	case l.hedge:
		if l.body, err = u.reopen(); err != nil {
			return nil, err
		}
	default:
		l.body = u.next()
	}
	return l.outgoing(x, held, passes)
}

// outgoing returns the request of the attempt: a shallow copy, which the base may not
// change either, with a body and a context of its own, and where the kit has something
// to add to it, a header of its own. Where all of that is the caller's, so is the
// request.
func (l *lane) outgoing(x *exchange, ctx context.Context, passes bool) (*http.Request, error) {
	o, key, watched, f := &x.transport.options, x.call.Key(), x.call.Watched(), x.transport.failover
	numbered := o.numberIn != "" && l.n > 1
	head, own := x.req.Header, false
	if head == nil {
		head, own = http.Header{}, true
	} else if key != "" || numbered || watched || o.prepare != nil || f != nil {
		head, own = head.Clone(), true
	}
	if f != nil {
		f.strip(head, x.call.Upstream())
	}
	if key != "" {
		head.Set("Idempotency-Key", key)
	}
	if numbered {
		head.Set(o.numberIn, strconv.Itoa(l.n-1))
	}
	if watched {
		ctx = x.call.Sending(ctx, l.n, header(head))
	}
	var out *http.Request
	switch {
	case o.prepare != nil || f != nil:
		out = x.req.Clone(ctx) // the hook may change what it finds
	case passes && !own && (l.body == nil || x.upload.plain):
		return x.req, nil
	case l.out != nil:
		out = &l.out.request
		*out = *x.req.WithContext(ctx)
	default:
		out = x.req.WithContext(ctx)
	}
	out.Header = head
	if l.body != nil {
		out.Body, out.GetBody = x.upload.outward(l.body)
	}
	if f != nil {
		if err := f.aim(out, x.call.Upstream(), x.call.Instance()); err != nil {
			return nil, unmade(out, err)
		}
	}
	if o.prepare != nil {
		if err := o.prepare(out, l.n); err != nil {
			return nil, unmade(out, err)
		}
	}
	return out, nil
}

// unmade closes the body of a request that is not sent.
func unmade(out *http.Request, err error) error {
	if out.Body != nil {
		out.Body.Close()
	}
	return err
}

// header is an attempt's header as hooks see it.
type header http.Header

func (h header) Get(key string) string { return http.Header(h).Get(key) }

func (h header) Set(key, value string) { http.Header(h).Set(key, value) }

func (h header) Keys() []string { return slices.Collect(maps.Keys(h)) }
