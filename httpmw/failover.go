package httpmw

import (
	"fmt"
	"net/http"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/check"
	"github.com/holdfast-go/holdfast/internal/instance"
	"github.com/holdfast-go/holdfast/outlier"
)

// Upstream is one of the places that can answer the requests of [Failover].
type Upstream struct {
	// URL is the base URL, such as "https://eu.example.com/v1": scheme, host and maybe
	// a path. It takes the place of the front in the requests' URLs; see [WithFront].
	URL string

	// Instances are the base URLs of several servers that are one upstream: the
	// breaker judges them together, and one that is worse than the others is left
	// out for a while. They stand in the place of URL; there are at most 64.
	Instances []string

	// Outlier says when an instance is left out. Zero is the documented default.
	Outlier outlier.Config

	// Name is the target that breaker, bulkhead and metrics are named for. Empty is
	// the URL, or the first instance's, with its port. Upstreams of one name and
	// different Resources share what belongs to the target.
	Name string

	// Resource is the part of the target that is called, such as a model behind a
	// channel: with the breaker scope TwoLevel it has a breaker of its own. Empty is
	// the request's own, by holdfast.WithResource.
	Resource string

	// Credentials sends the caller's credentials to this upstream too: the header
	// fields that [WithCredentialHeaders] lists. Without it they go only to an
	// upstream of the front's own origin (scheme, host and port), and so do the
	// cookies that an upstream sets: its Set-Cookie does not reach the caller.
	Credentials bool

	// Prepare is given each attempt's own copy of the request, aimed at this upstream,
	// before it is sent: to set the upstream's own credentials, say. It may change the
	// header, and may put another body in the place of the request's: it closes the
	// old one then and sets ContentLength, and GetBody if it can. It runs before the
	// attempt hook. Its error ends the call.
	Prepare func(*http.Request) error
}

// Failover returns a Transport that sends each request to the first of several
// upstreams that can answer it. The list is in order of preference. Base is as for
// [New]; the errors name every bad upstream as well.
//
// The walk along the list stands inside the retries:
//
//	Fallback( Retry( Failover( CircuitBreaker( Timeout( Bulkhead( request ) ) ) ) ) )
//
// An upstream whose breaker or bulkhead refuses is passed over, and after a failure
// that may be repeated the next has its turn, at once and without a token of the
// retry budget; MaxAttempts counts walks. A request that may not be repeated moves on
// only if nothing of it was sent. Nothing moves once RoundTrip has returned, which it
// does at the response headers, or with Timeout.FirstMessage set at the first message.
// With several upstreams nothing is hedged.
//
// If all upstreams of a list of two or more are open, one is tried all the same: the
// one with the least cooldown left, at most one at a time and one a second. One that
// somebody forced open is never asked.
//
// The retry budget of the whole list is that of its first upstream.
func Failover(base http.RoundTripper, k *holdfast.Kit, upstreams []Upstream, opts ...Option) (*Transport, error) {
	o, err := collect(opts, true)
	if err != nil {
		return nil, err
	}
	t, err := newTransport(base, k, o)
	if err != nil {
		return nil, err
	}
	t.failover, err = newFailover(t.binding, upstreams, o)
	if err != nil {
		return nil, err
	}
	return t, nil
}

// failover is a list of upstreams, and where the requests' URLs lead by themselves.
type failover struct {
	front     place
	upstreams []upstream
	secret    []string
	list      *holdfast.Upstreams
}

// upstream is an Upstream made ready.
type upstream struct {
	Upstream
	label     string
	instances []place
	trusted   bool // with the caller's credentials
}

func newFailover(b *holdfast.Binding, upstreams []Upstream, o options) (*failover, error) {
	var faults check.Faults
	f := &failover{secret: o.credentials()}
	list := make([]holdfast.Upstream, len(upstreams))
	for i, u := range upstreams {
		field := fmt.Sprintf("Upstreams[%d]", i)
		faults.In(field, u.check())
		ready := upstream{Upstream: u}
		for _, base := range u.bases() {
			at, _ := parsePlace(base)
			ready.instances = append(ready.instances, at)
		}
		f.upstreams = append(f.upstreams, ready)
	}
	var err error
	switch {
	case o.front != "":
		if f.front, err = parsePlace(o.front); err != nil {
			faults.Add("WithFront", nil, "%v", err)
		}
	case len(upstreams) > 0:
		f.front = f.upstreams[0].instances[0]
	}
	if err := faults.Err("httpmw"); err != nil {
		return nil, err
	}
	for i := range f.upstreams {
		u := &f.upstreams[i]
		u.trusted = u.Credentials
		if !u.Credentials {
			u.trusted = u.all(func(p place) bool { return p.origin == f.front.origin })
		}
		list[i] = holdfast.Upstream{Name: u.Name, Resource: u.Resource}
		if u.Name == "" {
			list[i].Name = u.instances[0].String()
		}
		u.label = list[i].String()
		if len(u.instances) > 1 {
			if list[i].Instances, err = u.set(); err != nil {
				return nil, err
			}
		}
	}
	f.list, err = b.Upstreams(list...)
	return f, err
}

// bases returns the URLs of an upstream as they were given.
func (u *Upstream) bases() []string {
	if len(u.Instances) > 0 {
		return u.Instances
	}
	return []string{u.URL}
}

// check returns every bad field.
func (u *Upstream) check() check.Faults {
	var faults check.Faults
	if u.URL != "" && len(u.Instances) > 0 {
		faults.Add("URL", nil, "is set beside Instances: one of the two names the upstream")
	}
	if len(u.Instances) == 0 {
		if _, err := parsePlace(u.URL); err != nil {
			faults.Add("URL", nil, "%v", err)
		}
	}
	seen := map[string]bool{}
	for i, base := range u.Instances {
		at, err := parsePlace(base)
		switch {
		case err != nil:
			faults.Add(fmt.Sprintf("Instances[%d]", i), nil, "%v", err)
		case seen[at.String()]:
			faults.Add(fmt.Sprintf("Instances[%d]", i), at, "is there twice")
		}
		seen[at.String()] = true
	}
	if n := len(u.Instances); n > instance.Max {
		faults.Add("Instances", n, "there must be at most %d", instance.Max)
	}
	faults.In("Outlier", check.Of(u.Outlier.Check()))
	return faults
}

// set returns what keeps the results of the instances apart.
func (u *upstream) set() (*instance.Set, error) {
	names := make([]string, len(u.instances))
	for i, at := range u.instances {
		names[i] = at.String()
	}
	return instance.New(u.Outlier, names...)
}

func (u *upstream) all(is func(place) bool) bool {
	for _, at := range u.instances {
		if !is(at) {
			return false
		}
	}
	return true
}
