package grpcmw

import (
	"context"
	"fmt"
	"reflect"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/call"
)

var errNilContext = status.Error(codes.Internal, "grpcmw: the context is nil")

// unary is the interceptor for unary RPCs.
func (i *Interceptors) unary(ctx context.Context, method string, req, reply any, cc *grpc.ClientConn, invoker grpc.UnaryInvoker, opts ...grpc.CallOption) error {
	if ctx == nil {
		return errNilContext
	}
	var options callOptions
	options.read(opts)
	if options.inside == i.kit {
		return invoker(ctx, method, req, reply, cc, opts...) // Failover does it all
	}
	if options.onFinish == nil {
		return i.invoke(ctx, i.find(method), method, req, reply, nil, cc, invoker, &options)
	}
	err := unwound.Err // what a panic leaves standing
	defer func() { options.finish(err) }()
	err = i.invoke(ctx, i.find(method), method, req, reply, nil, cc, invoker, &options)
	return err
}

// invoke makes a unary RPC: on cc by invoker, or if f is not nil on one of its
// connections.
func (i *Interceptors) invoke(ctx context.Context, r *route, method string, req, reply any, f *FailoverConn, cc *grpc.ClientConn, invoker grpc.UnaryInvoker, options *callOptions) error {
	info := call.Info{Target: i.targetOf(cc), Method: r.name, Safety: r.declared}
	terms := holdfast.Terms{Keyed: keyed(ctx), Override: options.override, Upstreams: f.upstreams()}
	var p *place
	if r.policy.MayRetry() {
		p = new(place)
		terms.UnaryRoom = &p.room
	}
	var c holdfast.Call
	ctx, err := c.Begin(ctx, r.policy, info, terms)
	if err != nil {
		return &statusError{err: err, bad: true}
	}
	var k *keep
	if s := c.Stale(); s != nil {
		k = i.keepFor(ctx, s, &c, cc, req, reply, options)
	}
	if k != nil || c.Computes() {
		c.TakesBy(func(answer any, failure error) error {
			if failure != nil {
				return failure
			}
			return copyReply(reply, answer)
		})
	}
	if c.Hedged() {
		if q, p, ok := messages(req, reply); ok {
			return i.hedged(ctx, c, k, method, q, p, cc, invoker, *options)
		}
	}
	looks := c.MayRetry() || k != nil
	answer, err := c.Run(ctx, func(ctx context.Context, n int) {
		if n > 1 {
			options.forget()
			clearReply(reply)
		}
		cc, invoker, pass, prepare := cc, invoker, options.pass, i.config.prepare
		if f != nil {
			to := f.leg(&c, options)
			cc, invoker, pass, prepare = to.cc(), to.invoke, to.pass(pass), to.prepares(prepare)
		}
		if adds(&c, n, prepare) {
			var err error
			if ctx, err = outgoing(ctx, &c, r.name, n, prepare); err != nil {
				c.End(unsent(err))
				return
			}
		}
		if k != nil {
			k.attempt(ctx)
		}
		if c.Probing() {
			pass = seek(cc, pass)
		}
		if !looks && !i.doubted.Load() {
			// Nothing hangs on whether the attempt was sent, or on what came with it.
			if err := invoker(ctx, method, req, reply, cc, pass...); err != nil {
				i.doubt(err)
				c.End(classify(ctx, err, evidence{}))
				return
			}
			c.Succeed()
			return
		}
		w := p.witnessOf(n)
		header := k != nil || i.wantsHeader(&c)
		err := invoker(ctx, method, req, reply, cc, w.options(pass, header, w.finish)...)
		k.saw(w)
		ev := w.evidence()
		c.End(i.forbid(classify(ctx, err, ev), ev))
	})
	if answer == nil && err == nil && k == nil {
		return nil
	}
	return answered(ctx, answer, err, &c, k, options)
}

// answered ends a call: with the fallback's answer, which is in the reply, if there is
// one, or with the call's own end.
func answered(ctx context.Context, answer any, err error, c *holdfast.Call, k *keep, options *callOptions) error {
	if answer != nil {
		options.mark(k.marks(c.Result().Class))
		return nil
	}
	if k != nil {
		k.take(ctx, c.Result().Class, err)
	}
	return withStatus(err)
}

// clearReply empties what a failed attempt may have left in the reply: gRPC
// fills it with the message before it has read the status.
func clearReply(reply any) {
	if m, ok := reply.(proto.Message); ok && m.ProtoReflect().IsValid() {
		proto.Reset(m)
	}
}

// copyReply fills the caller's reply with a fallback's answer.
func copyReply(reply, answer any) error {
	to, isMessage := reply.(proto.Message)
	from, ok := answer.(proto.Message)
	if isMessage && ok && to.ProtoReflect().IsValid() && from.ProtoReflect().IsValid() &&
		to.ProtoReflect().Descriptor() == from.ProtoReflect().Descriptor() {
		proto.Reset(to)
		proto.Merge(to, from)
		return nil
	}
	// Other codecs carry other types.
	dst, src := reflect.ValueOf(reply), reflect.ValueOf(answer)
	if !isMessage && dst.Kind() == reflect.Pointer && !dst.IsNil() && dst.Type() == src.Type() && !src.IsNil() {
		dst.Elem().Set(src.Elem())
		return nil
	}
	return fmt.Errorf("grpcmw: the fallback answered with %s, the reply is %s", typeOf(answer), typeOf(reply))
}

// typeOf names a type, and says so if the value is nil.
func typeOf(v any) string {
	if r := reflect.ValueOf(v); r.Kind() == reflect.Pointer && r.IsNil() {
		return fmt.Sprintf("a nil %T", v)
	}
	return fmt.Sprintf("a %T", v)
}
