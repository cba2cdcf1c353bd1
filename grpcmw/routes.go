package grpcmw

import (
	"maps"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/call"
)

// route is what is known of a method before it is called.
type route struct {
	name     string // in full
	policy   *holdfast.Method
	declared call.Safety
}

// maxRoutes bounds what is remembered of method names. The methods of a program
// are few; a proxy may be handed any number of names.
const maxRoutes = 2000

// routes finds the route of a method. Each is looked up once, at its first call:
// descriptors are registered when a program starts, maybe after its kit is made.
type routes struct {
	binding *holdfast.Binding

	known atomic.Pointer[map[string]*route] // never written to once stored
	mu    sync.Mutex                        // held to replace known
}

func newRoutes(b *holdfast.Binding) *routes {
	r := &routes{binding: b}
	r.known.Store(&map[string]*route{})
	return r
}

// find returns the route of an RPC's method.
func (r *routes) find(method string) *route {
	if known := (*r.known.Load())[method]; known != nil {
		return known
	}
	return r.learn(method)
}

func (r *routes) learn(method string) *route {
	r.mu.Lock()
	defer r.mu.Unlock()
	known := *r.known.Load()
	if found := known[method]; found != nil {
		return found
	}
	found := r.look(method)
	if len(known) < maxRoutes {
		next := make(map[string]*route, len(known)+1)
		maps.Copy(next, known)
		next[strings.Clone(method)] = found // it may be a piece of something large
		r.known.Store(&next)
	}
	return found
}

// look resolves a name: the method's own entry, its service's, or the default.
func (r *routes) look(method string) *route {
	name := strings.Clone(method)
	if !strings.HasPrefix(name, "/") {
		name = "/" + name
	}
	policy := r.binding.Method(name)
	if policy == nil {
		policy = r.binding.Method(serviceOf(name))
	}
	if policy == nil {
		policy = r.binding.Default()
	}
	return &route{name: name, policy: policy, declared: declaredSafety(name)}
}
