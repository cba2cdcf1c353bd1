package grpcmw

import (
	"sync/atomic"

	"google.golang.org/grpc"

	"github.com/holdfast-go/holdfast"
)

// Interceptors puts a kit into gRPC. It keeps no state of single calls; several
// connections may share it, and each has stale replies of its own.
type Interceptors struct {
	kit     *holdfast.Kit
	config  config
	binding *holdfast.Binding
	doubted atomic.Bool // proof is collected also where nothing is repeated
	caches  *caches
}

// New returns the interceptors of a kit. It returns an error if the kit is nil,
// options are bad, or the kit's table holds a name that is no gRPC name, names
// one method twice, or names a method that its registered service does not have;
// the error names every bad option, or every bad entry.
func New(k *holdfast.Kit, opts ...Option) (*Interceptors, error) {
	c, err := collect(opts, false)
	if err != nil {
		return nil, err
	}
	return newInterceptors(k, c)
}

func newInterceptors(k *holdfast.Kit, c config) (*Interceptors, error) {
	binding, err := k.Bind(protocol)
	if err != nil {
		return nil, err
	}
	return &Interceptors{kit: k, config: c, binding: binding, caches: newCaches(c.cacheScope)}, nil
}

// Unary returns the interceptor for unary RPCs.
func (i *Interceptors) Unary() grpc.UnaryClientInterceptor { return i.unary }

// Stream returns the interceptor for streaming RPCs.
func (i *Interceptors) Stream() grpc.StreamClientInterceptor { return i.stream }

// DialOptions returns both interceptors as chained ones, and switches gRPC's own
// retries off; see the package's comment for both.
func (i *Interceptors) DialOptions() []grpc.DialOption {
	return []grpc.DialOption{
		grpc.WithChainUnaryInterceptor(i.unary),
		grpc.WithChainStreamInterceptor(i.stream),
		grpc.WithDisableRetry(),
	}
}

// UnaryClientInterceptor is [New] and [Interceptors.Unary] in one. It panics on
// what New returns an error for, as regexp.MustCompile does: call it when the
// program starts.
func UnaryClientInterceptor(k *holdfast.Kit, opts ...Option) grpc.UnaryClientInterceptor {
	return must(k, opts).Unary()
}

// StreamClientInterceptor is [New] and [Interceptors.Stream] in one. It panics
// on what New returns an error for.
func StreamClientInterceptor(k *holdfast.Kit, opts ...Option) grpc.StreamClientInterceptor {
	return must(k, opts).Stream()
}

// DialOptions is [New] and [Interceptors.DialOptions] in one: all that
// grpc.NewClient needs. It panics on what New returns an error for.
func DialOptions(k *holdfast.Kit, opts ...Option) []grpc.DialOption {
	return must(k, opts).DialOptions()
}

func must(k *holdfast.Kit, opts []Option) *Interceptors {
	i, err := New(k, opts...)
	if err != nil {
		panic(err)
	}
	return i
}

// targetOf names the dependency behind a connection. It is empty for a nil one,
// which interceptors driven by hand may be given.
func (i *Interceptors) targetOf(cc *grpc.ClientConn) string {
	if i.config.target != "" {
		return i.config.target
	}
	if cc == nil {
		return ""
	}
	return cc.Target()
}
