package grpcmw

import (
	"context"
	"fmt"
	"strings"

	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/check"
)

// Option changes what [New] makes. The functions of this package that return one
// make it; the zero Option is an error.
type Option struct {
	apply func(*config, *check.Faults)
}

type config struct {
	target  string
	onPanic func(method string, value any, stack []byte)
	prepare prepare
	finalBy string // response metadata that forbids a repeat, "" for none

	cacheScope string   // whose the stale replies are, "" for each connection's own
	secret     []string // keys that say who asks, beside those that always do
}

// collect reads the options; failover says that they are for Failover.
func collect(opts []Option, failover bool) (config, error) {
	var c config
	var faults check.Faults
	for i, opt := range opts {
		if opt.apply == nil {
			faults.Add(fmt.Sprintf("Option[%d]", i), nil, "is the zero Option")
			continue
		}
		opt.apply(&c, &faults)
	}
	if c.target != "" && failover {
		faults.Add("WithTarget", nil, "is not for Failover, whose upstreams have names of their own")
	}
	return c, faults.Err("grpcmw")
}

// WithTarget names the dependency. Without it the name is the target given to
// grpc.NewClient, so that connections made with different targets have
// breakers and bulkheads of their own; with it they share those of the name.
// The name may not be empty.
func WithTarget(name string) Option {
	return Option{func(c *config, faults *check.Faults) {
		if name == "" {
			faults.Add("WithTarget", nil, "must not be empty")
		}
		c.target = name
	}}
}

// WithPanicHandler sets what is told of a panic that could not go on to the
// caller. A stream may end on a goroutine of gRPC's own, when its context ends or
// its connection is closed while the caller is not inside one of its methods. If
// the policy's Classify or a callback of the caller's panics there, the panic is
// recovered, for it would end the process. Without a handler the stream's next
// method call raises it again; a caller that makes none does not learn of it.
//
// The handler is called on that goroutine and must not panic. It may not be nil.
func WithPanicHandler(handle func(method string, value any, stack []byte)) Option {
	return Option{func(c *config, faults *check.Faults) {
		if handle == nil {
			faults.Add("WithPanicHandler", nil, "must not be nil")
		}
		c.onPanic = handle
	}}
}

// WithAttemptHook sets a function that is given each attempt's own copy of the
// outgoing metadata before it is sent, with the attempt's number from 1: to sign
// it anew, for instance. It may change the copy, whose keys are in lower case; the
// caller's context and the other attempts do not see it. ctx is the attempt's.
// Its error ends the call: nothing was sent. It is called for streams too, and for
// the attempts of a hedged call on goroutines of their own. It may not be nil.
func WithAttemptHook(prepare func(ctx context.Context, method string, attempt int, md metadata.MD) error) Option {
	return Option{func(c *config, faults *check.Faults) {
		if prepare == nil {
			faults.Add("WithAttemptHook", nil, "must not be nil")
		}
		c.prepare = prepare
	}}
}

// WithNoRetryMetadata names a key of the response's header or trailer by which
// the server forbids a repeat of an answer that otherwise would be repeated,
// whatever its value.
func WithNoRetryMetadata(key string) Option {
	return Option{func(c *config, faults *check.Faults) {
		if !isKey(key) {
			faults.Add("WithNoRetryMetadata", fmt.Sprintf("%q", key), "is no metadata key")
		}
		c.finalBy = strings.ToLower(key)
	}}
}

// WithCacheScope lets all connections of the interceptors share their stale
// replies, with each other and with all others of the same scope and store: those
// of other processes, or of this program before it was started anew. Without it
// they are each connection's own. Only connections that may see each other's
// replies may share a scope: not those with different certificates or credentials.
// The scope may not be empty.
func WithCacheScope(scope string) Option {
	return Option{func(c *config, faults *check.Faults) {
		if scope == "" {
			faults.Add("WithCacheScope", nil, "must not be empty")
		}
		c.cacheScope = scope
	}}
}

// WithCredentialMetadata adds keys of the outgoing metadata to those that the stale
// replies of fallback.SharedByAll take for the caller's credentials: authorization,
// proxy-authorization, cookie, cookie2, api-key, x-api-key, x-auth-token, x-csrf-token,
// x-goog-api-key and x-amz-security-token. An RPC that has one of them, whatever its
// value, and from its caller or from an attempt hook, has no part in such a cache. Name
// here what else the server tells its callers apart by, such as a tenant's token or a
// user's name. Each key counts with and without "-bin" at its end.
func WithCredentialMetadata(keys ...string) Option {
	return Option{func(c *config, faults *check.Faults) {
		for _, key := range keys {
			if !isKey(key) {
				faults.Add("WithCredentialMetadata", fmt.Sprintf("%q", key), "is no metadata key")
			}
			c.secret = append(c.secret, withoutBin(strings.ToLower(key)))
		}
	}}
}

// withoutBin returns the key without what says that its values are bytes.
func withoutBin(key string) string { return strings.TrimSuffix(key, "-bin") }

// isKey reports whether s may be a key of metadata that an application sets.
func isKey(s string) bool {
	return s != "" && !strings.ContainsFunc(s, func(r rune) bool {
		switch {
		case '0' <= r && r <= '9', 'a' <= r && r <= 'z', 'A' <= r && r <= 'Z':
			return false
		}
		return r != '-' && r != '_' && r != '.'
	})
}

// WithOverride is a call option that replaces layers of the method's policy for
// one call. It outranks holdfast.WithOverride; of several the last holds. A bad
// override fails the call with an error that names the field.
func WithOverride(o holdfast.Override) grpc.CallOption { return &override{terms: o} }

type override struct {
	grpc.EmptyCallOption
	terms holdfast.Override
}

// callOptions is what the options of one call hold for the kit.
type callOptions struct {
	override *holdfast.Override
	onFinish []func(error)     // to be called once, whatever the number of attempts
	pass     []grpc.CallOption // the others, for gRPC; not to be appended to
	targets  bool              // some of pass are filled by an attempt

	inside   *holdfast.Kit // whose failover makes the call; nil if none does
	upstream []*string     // to be told which upstream was asked
}

func readOptions(opts []grpc.CallOption) (c callOptions) {
	c.read(opts)
	return c
}

// read sorts the options of one call. It allocates only if there is something to
// take out.
func (c *callOptions) read(opts []grpc.CallOption) {
	ours := 0
	for _, opt := range opts {
		switch o := opt.(type) {
		case *override:
			c.override = &o.terms
			ours++
		case *reportUpstream:
			c.upstream = append(c.upstream, o.name)
			ours++
		case *insideFailover:
			c.inside = o.kit
		case grpc.OnFinishCallOption:
			if o.OnFinish != nil {
				c.onFinish = append(c.onFinish, o.OnFinish)
			}
			ours++
		case grpc.HeaderCallOption, grpc.TrailerCallOption, grpc.PeerCallOption:
			c.targets = true
		}
	}
	// The slice may be the connection's own: nobody may write behind its end.
	c.pass = opts[:len(opts):len(opts)]
	if ours == 0 {
		return
	}
	c.pass = make([]grpc.CallOption, 0, len(opts)-ours)
	for _, opt := range opts {
		switch opt.(type) {
		case *override, *reportUpstream, grpc.OnFinishCallOption:
		default:
			c.pass = append(c.pass, opt)
		}
	}
}

// forget empties the caller's targets before a repeat. An attempt that never
// gets a stream does not touch them, and what they show must not be an older
// attempt's.
func (c *callOptions) forget() {
	if !c.targets {
		return
	}
	for _, opt := range c.pass {
		switch o := opt.(type) {
		case grpc.HeaderCallOption:
			empty(o.HeaderAddr)
		case grpc.TrailerCallOption:
			empty(o.TrailerAddr)
		case grpc.PeerCallOption:
			empty(o.PeerAddr)
		}
	}
}

func empty[T any](target *T) {
	if target != nil {
		*target = *new(T)
	}
}

// finish calls the caller's OnFinish callbacks.
func (c *callOptions) finish(err error) {
	for _, f := range c.onFinish {
		f(err)
	}
}
