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
	asked    string // the name that it is found by
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
	near  [nearRoutes]atomic.Pointer[route] // some of known, each in the place of its name
	known atomic.Pointer[map[string]*route] // never written to once stored
	mu    sync.Mutex                        // held to replace known
}

func newRoutes() *routes {
	r := &routes{}
	r.known.Store(&map[string]*route{})
	return r
}

// nearRoutes is how many routes are found without a map, which costs a call 20 ns less.
const nearRoutes = 32

// placeOf returns where a name's route is among the near ones, if it is.
func placeOf(method string) int {
	if method == "" {
		return 0
	}
	return (len(method) + int(method[len(method)-1])) % nearRoutes
}

func (r *routes) find(t *holdfast.Table, method string) *route {
	if near := r.near[placeOf(method)].Load(); near != nil && near.asked == method {
		return near
	}
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
		next[found.asked] = found
		r.known.Store(&next)
		r.near[placeOf(method)].CompareAndSwap(nil, found)
	}
	return found
}

// look resolves a name: the method's own entry, its service's, or the default.
func look(t *holdfast.Table, method string) *route {
	asked := strings.Clone(method) // it may be a piece of something large
	name := asked
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
	return &route{asked: asked, name: name, policy: policy, declared: declaredSafety(name)}
}
