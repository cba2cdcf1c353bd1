package grpcmw

import (
	"context"
	"runtime"
	"slices"
	"sync"
	"time"
	"weak"

	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"
	"google.golang.org/protobuf/proto"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/call"
	"github.com/holdfast-go/holdfast/fallback"
	"github.com/holdfast-go/holdfast/internal/answers"
	"github.com/holdfast-go/holdfast/internal/cachecontrol"
	"github.com/holdfast-go/holdfast/internal/credential"
)

// keep is what a unary call has to do with its connection's copies of earlier
// replies.
type keep struct {
	cache  *answers.Cache
	policy *fallback.Stale
	key    answers.Key
	shared bool     // the reply is everybody's
	secret []string // the option's
	reply  proto.Message
	asked  answers.Stamp // when the call began
	header metadata.MD   // of the attempt that the call ended with
	heard  bool          // it is known: gRPC has told of the attempt's end
	stale  metadata.MD   // the marks of the stale reply, if that was read

	mu      sync.Mutex
	changed bool // an attempt hook has put credentials into an attempt
}

// keepFor returns the part in the cache of a call with a policy for it, nil if it has
// none.
func (i *Interceptors) keepFor(ctx context.Context, s *fallback.Stale, c *holdfast.Call, cc *grpc.ClientConn, req, reply any, options *callOptions) *keep {
	returned := false
	defer func() {
		if !returned { // Identity has panicked: the call ends here
			c.Unwound()
		}
	}()
	k := i.keepBy(ctx, s, c, cc, req, reply, options)
	returned = true
	return k
}

// keepBy is keepFor where nothing panics.
func (i *Interceptors) keepBy(ctx context.Context, s *fallback.Stale, c *holdfast.Call, cc *grpc.ClientConn, req, reply any, options *callOptions) *keep {
	q, p, ok := messages(req, reply)
	if !ok {
		return nil // what other codecs carry has no bytes here
	}
	k := &keep{cache: i.caches.of(cc), policy: s, secret: i.config.secret, reply: p}
	k.asked = k.cache.Stamp()
	if !k.find(ctx, c.Info(), q, options) {
		return nil
	}
	c.StaleFrom(func(ctx context.Context, after call.Class) (any, time.Duration, error) {
		m, age, err := k.read(ctx, after)
		if m == nil {
			return nil, 0, err
		}
		return m, age, nil
	})
	return k
}

// find works out the key, and reports whether the call has a part in the cache.
func (k *keep) find(ctx context.Context, info call.Info, req proto.Message, options *callOptions) bool {
	md, _ := metadata.FromOutgoingContext(ctx)
	own, authority := k.hasCredentials(md), ""
	for _, opt := range options.pass {
		switch o := opt.(type) {
		case grpc.PerRPCCredsCallOption:
			own = true
		case grpc.AuthorityOverrideCallOption:
			authority = o.Authority
		}
	}
	h, ok := k.cache.Key(ctx, k.policy, fallback.Request{Info: info, Header: md}, own)
	if !ok {
		return false
	}
	body, err := proto.MarshalOptions{Deterministic: true}.Marshal(req)
	if err != nil {
		return false
	}
	h.Add("grpc", info.Method, authority, string(req.ProtoReflect().Descriptor().FullName()), string(k.reply.ProtoReflect().Descriptor().FullName()))
	h.AddBytes(body)
	k.key, k.shared = h.Key(), h.Shared
	return true
}

// hasCredentials reports whether the metadata says who asks.
func (k *keep) hasCredentials(md metadata.MD) bool {
	for key := range md {
		if key = withoutBin(key); credential.Is(key) || slices.Contains(k.secret, key) {
			return true
		}
	}
	return false
}

// attempt looks at what an attempt hook has made of the metadata.
func (k *keep) attempt(ctx context.Context) {
	if k == nil || !k.shared {
		return
	}
	if md, _ := metadata.FromOutgoingContext(ctx); k.hasCredentials(md) {
		k.mu.Lock()
		defer k.mu.Unlock()
		k.changed = true
	}
}

// saw notes what came with the end of an attempt. Where an interceptor further in has
// answered by itself, or dropped the call options, nobody knows what the server says of
// its reply.
func (k *keep) saw(w *witness) {
	if k != nil {
		ev := w.evidence()
		k.header, k.heard = ev.header, ev.reached
	}
}

// marks returns what says that a reply is a fallback's. k may be nil.
func (k *keep) marks(after call.Class) metadata.MD {
	if k != nil && k.stale != nil {
		return k.stale
	}
	return metadata.Pairs(fallback.CacheStatusField, answers.ComputedStatus(after))
}

// read returns the stale reply, nil if there is none.
func (k *keep) read(ctx context.Context, after call.Class) (proto.Message, time.Duration, error) {
	if k.changed {
		return nil, 0, nil
	}
	e, ok, err := k.cache.Get(ctx, k.policy, k.key)
	if !ok {
		return nil, 0, err
	}
	m := k.reply.ProtoReflect().New().Interface()
	if proto.Unmarshal(e.Payload, m) != nil {
		return nil, 0, nil
	}
	k.stale = metadata.Pairs(fallback.AgeField, e.AgeSeconds(), fallback.CacheStatusField, e.CacheStatus(after)) // in lower case
	return m, e.Age, nil
}

// take looks at the reply that the caller gets: one that may be stored is, by
// value, and any other answer of the dependency's own takes the place of what was
// stored.
func (k *keep) take(ctx context.Context, class call.Class, err error) {
	if class != call.ClientFault && (class != call.OK || err != nil) {
		return // it says nothing of what was asked for
	}
	policy := k.policy.WithDefaults()
	e, ok := terms(k.header, policy, k.asked.Age())
	if class != call.OK || !ok || k.changed || !k.heard || proto.Size(k.reply) > policy.MaxBody {
		k.cache.Drop(ctx, k.policy, k.key)
		return
	}
	payload, err := proto.Marshal(k.reply)
	if err != nil {
		return
	}
	e.Payload = payload
	k.cache.Put(ctx, k.policy, k.key, e, k.asked)
}

// terms returns on what terms a reply may be stored, and whether it may be at all.
// gRPC has no rules for that; a server that sends Cache-Control as metadata means
// it as it is meant in HTTP.
func terms(header metadata.MD, policy fallback.Stale, age time.Duration) (e answers.Entry, ok bool) {
	says, readable := cachecontrol.Parse(header["cache-control"])
	if !readable || says.NoStore || says.NoCache || says.Private || fallback.MarkedBy(header["cache-status"]) {
		return answers.Entry{}, false
	}
	e = answers.Entry{Age: age, Fresh: policy.Fresh, Limit: policy.MaxStale}
	if says.MaxAge.Set {
		e.Fresh = says.MaxAge.Duration
	}
	e.Limit = says.Limit(e.Fresh, e.Limit)
	return e, e.Age < e.Limit
}

// caches are those of the connections: each has its own, for its certificates and
// credentials are its own. A connection that nobody uses any more takes its cache
// along.
type caches struct {
	scope  string
	shared *answers.Cache // of all connections, if there is a scope; of calls without one

	mu     sync.RWMutex
	byConn map[weak.Pointer[grpc.ClientConn]]*answers.Cache
}

func newCaches(scope string) *caches {
	return &caches{scope: scope, shared: answers.NewCache(scope), byConn: map[weak.Pointer[grpc.ClientConn]]*answers.Cache{}}
}

func (c *caches) of(cc *grpc.ClientConn) *answers.Cache {
	if c.scope != "" || cc == nil {
		return c.shared
	}
	conn := weak.Make(cc)
	c.mu.RLock()
	found := c.byConn[conn]
	c.mu.RUnlock()
	if found != nil {
		return found
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if found = c.byConn[conn]; found == nil {
		found = answers.NewCache("")
		c.byConn[conn] = found
		runtime.AddCleanup(cc, c.forget, conn)
	}
	return found
}

func (c *caches) forget(conn weak.Pointer[grpc.ClientConn]) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.byConn, conn)
}

// mark gives the caller's targets the marks of a fallback's answer. No peer has
// sent it, and it has no trailer.
func (c *callOptions) mark(marks metadata.MD) {
	c.forget()
	for _, opt := range c.pass {
		if o, ok := opt.(grpc.HeaderCallOption); ok {
			put(o.HeaderAddr, marks.Copy())
		}
	}
}
