package httpmw

import (
	"net/http"
	"net/url"
	"slices"

	"github.com/holdfast-go/holdfast"
)

// upstreamList returns the list, nil for a nil failover.
func (f *failover) upstreamList() *holdfast.Upstreams {
	if f == nil {
		return nil
	}
	return f.list
}

// strip takes the caller's credentials out of the header for an upstream that is not to
// see them.
func (f *failover) strip(head http.Header, i int) {
	if f.upstreams[i].trusted {
		return
	}
	for name := range head {
		if slices.Contains(f.secret, http.CanonicalHeaderKey(name)) {
			delete(head, name)
		}
	}
}

// aim makes an attempt's request one to an upstream.
func (f *failover) aim(out *http.Request, i, instance int) error {
	u := &f.upstreams[i]
	at := u.instances[instance]
	path, escaped, _ := f.front.rest(out.URL)
	if out.Host == out.URL.Host {
		out.Host = ""
	}
	at.point(out.URL, path, escaped)
	if u.Prepare == nil {
		return nil
	}
	body, reopen := out.Body, out.GetBody
	out.GetBody = nil
	if err := u.Prepare(out); err != nil {
		return err
	}
	if out.Body == body && out.GetBody == nil {
		out.GetBody = reopen
	}
	return nil
}

// received makes the response of an upstream one to the request below the front, and
// returns the upstream's label.
func (f *failover) received(resp *http.Response, i int) string {
	u := &f.upstreams[i]
	if !u.trusted {
		delete(resp.Header, "Set-Cookie")
	}
	if place := resp.Header.Get("Location"); place != "" && resp.Request != nil && resp.Request.URL != nil {
		if to, err := resp.Request.URL.Parse(place); err == nil {
			resp.Header.Set("Location", f.fromFront(u, to))
		}
	}
	return u.label
}

// fromFront returns a place below one of the upstream's instances as one below the
// front, and any other in full.
func (f *failover) fromFront(u *upstream, to *url.URL) string {
	i := slices.IndexFunc(u.instances, func(at place) bool {
		_, _, below := at.rest(to)
		return below
	})
	if i >= 0 {
		path, escaped, _ := u.instances[i].rest(to)
		f.front.point(to, path, escaped)
	}
	return to.String()
}
