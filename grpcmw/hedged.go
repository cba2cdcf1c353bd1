package grpcmw

import (
	"context"

	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/call"
)

// messages returns the request and the reply of an RPC as protobuf messages. What
// another codec carries can be neither copied nor handed over, so that there is
// no hedging then.
func messages(req, reply any) (q, p proto.Message, ok bool) {
	q, isRequest := req.(proto.Message)
	p, isReply := reply.(proto.Message)
	return q, p, isRequest && isReply && q.ProtoReflect().IsValid() && p.ProtoReflect().IsValid()
}

// hedged is invoke for a call whose attempts may run beside each other: each has
// a request, a reply and header targets of its own.
func (i *Interceptors) hedged(ctx context.Context, c holdfast.Call, k *keep, method string, req, reply proto.Message, cc *grpc.ClientConn, invoker grpc.UnaryInvoker, options callOptions) error {
	own := options.withoutTargets()
	header := options.targets || i.wantsHeader(&c) || k != nil
	answer, err := c.RunHedged(ctx, func(n int) (func(context.Context, int) call.Result, func()) {
		if n > 1 { // what they show is not to be an older attempt's
			options.forget()
			clearReply(reply)
		}
		request, response, w := proto.CloneOf(req), reply.ProtoReflect().New(), new(witness)
		attempt := func(ctx context.Context, n int) call.Result {
			ctx, err := outgoing(ctx, &c, c.Info().Method, n, i.config.prepare)
			if err != nil {
				return unsent(err)
			}
			k.attempt(ctx)
			pass := own
			if c.Probing() {
				pass = seek(cc, pass)
			}
			err = invoker(ctx, method, request, response.Interface(), cc, w.options(pass, header, w.finish)...)
			return i.forbid(classify(ctx, err, w.evidence()), w.evidence())
		}
		return attempt, func() {
			handOver(reply.ProtoReflect(), response)
			options.fill(w)
			k.saw(w)
		}
	})
	return answered(ctx, answer, err, &c, k, &options)
}

// handOver moves the content of one message to another of its type. from must not
// be used any more: the two share what it refers to.
func handOver(to, from protoreflect.Message) {
	proto.Reset(to.Interface())
	from.Range(func(field protoreflect.FieldDescriptor, value protoreflect.Value) bool {
		to.Set(field, value)
		return true
	})
	to.SetUnknown(from.GetUnknown())
}

// withoutTargets returns the options for gRPC without those that an attempt
// fills.
func (c *callOptions) withoutTargets() []grpc.CallOption {
	if !c.targets {
		return c.pass
	}
	own := make([]grpc.CallOption, 0, len(c.pass))
	for _, opt := range c.pass {
		switch opt.(type) {
		case grpc.HeaderCallOption, grpc.TrailerCallOption, grpc.PeerCallOption:
		default:
			own = append(own, opt)
		}
	}
	return own
}

// fill gives the caller's targets what the attempt that has won was told. If it
// found no connection they are empty.
func (c *callOptions) fill(w *witness) {
	if !c.targets {
		return
	}
	var seen witness
	if w.finished.Load() { // else gRPC may still write, or was never asked
		seen.header, seen.trailer, seen.peer = w.header, w.trailer, w.peer
	}
	for _, opt := range c.pass {
		switch o := opt.(type) {
		case grpc.HeaderCallOption:
			put(o.HeaderAddr, seen.header)
		case grpc.TrailerCallOption:
			put(o.TrailerAddr, seen.trailer)
		case grpc.PeerCallOption:
			put(o.PeerAddr, seen.peer)
		}
	}
}

func put[T any](target *T, value T) {
	if target != nil {
		*target = value
	}
}
