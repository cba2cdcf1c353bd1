package grpcmw

import (
	"maps"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/call"
	"github.com/holdfast-go/holdfast/internal/wire/grpcwire"
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

// find returns the route of an RPC's method in the table in force.
func (i *Interceptors) find(method string) *route {
	table := i.binding.Table()
	return table.Routes().(*routes).find(table, method)
}

// routes finds the route of a method in one table. Each is looked up once, at its
// first call: descriptors are registered when a program starts, maybe after its
// kit is made.
type routes struct {
	known atomic.Pointer[map[string]*route] // never written to once stored
	mu    sync.Mutex                        // held to replace known
}

func newRoutes() *routes {
	r := &routes{}
	r.known.Store(&map[string]*route{})
	return r
}

func (r *routes) find(t *holdfast.Table, method string) *route {
	if known := (*r.known.Load())[method]; known != nil {
		return known
	}
	return r.learn(t, method)
}

func (r *routes) learn(t *holdfast.Table, method string) *route {
	r.mu.Lock()
	defer r.mu.Unlock()
	known := *r.known.Load()
	if found := known[method]; found != nil {
		return found
	}
	found := look(t, method)
	if len(known) < maxRoutes {
		next := make(map[string]*route, len(known)+1)
		maps.Copy(next, known)
		next[strings.Clone(method)] = found // it may be a piece of something large
		r.known.Store(&next)
	}
	return found
}

// look resolves a name: the method's own entry, its service's, or the default.
func look(t *holdfast.Table, method string) *route {
	name := strings.Clone(method)
	if !strings.HasPrefix(name, "/") {
		name = "/" + name
	}
	policy := t.Method(name)
	if policy == nil {
		policy = t.Method(grpcwire.ServiceOf(name))
	}
	if policy == nil {
		policy = t.Default()
	}
	return &route{name: name, policy: policy, declared: declaredSafety(name)}
}
