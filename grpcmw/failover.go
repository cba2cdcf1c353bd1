package grpcmw

import (
	"context"
	"fmt"

	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/check"
	"github.com/holdfast-go/holdfast/internal/instance"
	"github.com/holdfast-go/holdfast/outlier"
)

// Upstream is one of the places that can answer the RPCs of [Failover].
type Upstream struct {
	// Conn is the connection, which the caller has made and closes. It need not have
	// the kit's interceptors; if it has them, they leave the RPCs of the failover
	// alone.
	Conn grpc.ClientConnInterface

	// Instances are the connections to several servers that are one upstream: the
	// breaker judges them together, and one that is worse than the others is left out
	// for a while. They stand in the place of Conn; there are at most 64. The servers
	// behind one connection, as round_robin keeps them, cannot be told apart before
	// gRPC has picked one.
	Instances []grpc.ClientConnInterface

	// Outlier says when an instance is left out. Zero is the documented default.
	Outlier outlier.Config

	// Name is the target that breaker, bulkhead and metrics are named for. Empty is
	// the target given to grpc.NewClient, of the first instance if there are several.
	// Upstreams of one name and different Resources share what belongs to the target.
	Name string

	// Resource is the part of the target that is called, such as a model behind a
	// channel: with the breaker scope TwoLevel it has a breaker of its own. Empty is
	// the call's own, by holdfast.WithResource.
	Resource string

	// Prepare is given each attempt's own copy of the outgoing metadata before it is
	// sent to this upstream: to set its credentials, say. It runs before the attempt
	// hook; see [WithAttemptHook]. Its error ends the call.
	Prepare func(ctx context.Context, method string, attempt int, md metadata.MD) error
}

// FailoverConn makes each RPC on the first of several upstreams that can answer it.
// Generated clients take it for a connection.
type FailoverConn struct {
	interceptors *Interceptors
	list         *holdfast.Upstreams
	ups          []Upstream
	labels       []string // as they are reported
}

var _ grpc.ClientConnInterface = (*FailoverConn)(nil)

// Failover returns a connection over several upstreams. The list is in order of
// preference. It returns an error for what [New] does, and names every bad upstream.
//
// The walk along the list stands inside the retries:
//
//	Fallback( Retry( Failover( CircuitBreaker( Timeout( Bulkhead( RPC ) ) ) ) ) )
//
// An upstream whose breaker or bulkhead refuses is passed over, and after a failure
// that may be repeated the next has its turn, at once and without a token of the
// retry budget; MaxAttempts counts walks. A call that may not be repeated moves on
// only if nothing of it was sent. A stream moves on while it may be opened again:
// until a message or a header was delivered. With several upstreams nothing is
// hedged.
//
// If all upstreams of a list of two or more are open, one is tried all the same: the
// one with the least cooldown left, at most one at a time and one a second. One that
// somebody forced open is never asked.
//
// The caller's metadata goes to every upstream, credentials in it too; gRPC's own
// per-RPC credentials belong to their connection. The retry budget of the whole list
// is that of its first upstream. WithTarget is an error here: upstreams
// have names of their own.
func Failover(k *holdfast.Kit, upstreams []Upstream, opts ...Option) (*FailoverConn, error) {
	c, err := collect(opts, true)
	if err != nil {
		return nil, err
	}
	i, err := newInterceptors(k, c)
	if err != nil {
		return nil, err
	}
	f := &FailoverConn{interceptors: i}
	var faults check.Faults
	list := make([]holdfast.Upstream, len(upstreams))
	for n, u := range upstreams {
		faults.In(fmt.Sprintf("Upstreams[%d]", n), u.check())
		if !none(u.Conn) {
			u.Instances = []grpc.ClientConnInterface{u.Conn}
		} else {
			u.Instances = append([]grpc.ClientConnInterface(nil), u.Instances...)
		}
		u.Name = u.name()
		list[n] = holdfast.Upstream{Name: u.Name, Resource: u.Resource}
		f.ups, f.labels = append(f.ups, u), append(f.labels, list[n].String())
	}
	if err := faults.Err("grpcmw"); err != nil {
		return nil, err
	}
	for n, u := range f.ups {
		if len(u.Instances) < 2 {
			continue
		}
		if list[n].Instances, err = instance.New(u.Outlier, u.instanceNames()...); err != nil {
			return nil, err
		}
	}
	f.list, err = i.binding.Upstreams(list...)
	if err != nil {
		return nil, err
	}
	return f, nil
}

// check returns every bad field.
func (u *Upstream) check() check.Faults {
	var faults check.Faults
	switch {
	case none(u.Conn) && len(u.Instances) == 0:
		faults.Add("Conn", nil, "is missing")
	case !none(u.Conn) && len(u.Instances) > 0:
		faults.Add("Conn", nil, "is set beside Instances: one of the two names the upstream")
	}
	for i, conn := range u.Instances {
		if none(conn) {
			faults.Add(fmt.Sprintf("Instances[%d]", i), nil, "is nil")
		}
	}
	if n := len(u.Instances); n > instance.Max {
		faults.Add("Instances", n, "there must be at most %d", instance.Max)
	}
	if u.name() == "" && len(faults) == 0 {
		faults.Add("Name", nil, "is missing, and the connection has no target")
	}
	faults.In("Outlier", check.Of(u.Outlier.Check()))
	return faults
}

// name returns the target.
func (u *Upstream) name() string {
	conn := u.Conn
	if none(conn) && len(u.Instances) > 0 {
		conn = u.Instances[0]
	}
	if u.Name != "" || none(conn) {
		return u.Name
	}
	return targetOf(conn)
}

// targetOf returns the target of a connection, empty if it has none.
func targetOf(conn grpc.ClientConnInterface) string {
	if has, ok := conn.(interface{ Target() string }); ok {
		return has.Target()
	}
	return ""
}

// none reports whether there is no connection.
func none(conn grpc.ClientConnInterface) bool {
	cc, ours := conn.(*grpc.ClientConn)
	return conn == nil || ours && cc == nil
}

// instanceNames names the instances: by their targets if these differ.
func (u *Upstream) instanceNames() []string {
	labels, seen := make([]string, len(u.Instances)), map[string]bool{}
	for i, conn := range u.Instances {
		labels[i] = targetOf(conn)
		if labels[i] == "" || seen[labels[i]] {
			labels[i] = fmt.Sprintf("%s#%d", u.Name, i)
		}
		seen[labels[i]] = true
	}
	return labels
}

// upstreams returns the list, nil for a nil FailoverConn.
func (f *FailoverConn) upstreams() *holdfast.Upstreams {
	if f == nil {
		return nil
	}
	return f.list
}

// Invoke makes a unary RPC.
func (f *FailoverConn) Invoke(ctx context.Context, method string, args, reply any, opts ...grpc.CallOption) error {
	if ctx == nil {
		return errNilContext
	}
	i, options := f.interceptors, readOptions(opts)
	err := unwound.Err // what a panic leaves standing
	defer func() { options.finish(err) }()
	err = i.invoke(ctx, i.find(method), method, args, reply, f, nil, nil, &options)
	return err
}

// NewStream begins a streaming RPC.
func (f *FailoverConn) NewStream(ctx context.Context, desc *grpc.StreamDesc, method string, opts ...grpc.CallOption) (grpc.ClientStream, error) {
	if ctx == nil {
		return nil, errNilContext
	}
	return f.interceptors.begin(ctx, desc, repeat{failover: f, method: method}, readOptions(opts))
}
