package chaos

import (
	"context"
	"errors"
	"io"
	"strconv"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/protobuf/types/known/wrapperspb"
)

func (c *client) grpcCall() {
	name, of := pick(c.draw, "Read", "Keep", "Put", "Add", "Feed", "Feed", "Upload", "Chat"), pick(c.draw, service, service, books)
	var o order
	switch name {
	case "Keep":
		o, _ = c.keptOrder()
		of = service
	case "Read", "Put", "Feed":
		o = c.order("")
	default:
		o = c.order(once)
	}
	unary := name == "Read" || name == "Put" || name == "Add" || name == "Keep"
	if unary {
		o.pieces = 1
	}
	if o.code = int(codes.OK); name != "Keep" { // a kept order is the same each time
		o.code = int(pick(c.draw, codes.OK, codes.OK, codes.OK, codes.OK, codes.OK, codes.OK, codes.OK,
			codes.Unavailable, codes.Internal, codes.ResourceExhausted, codes.NotFound))
	}
	ctx, cancel := c.patience()
	defer cancel()
	a := asked{order: o, ctx: ctx, kind: "gRPC " + name, read: name != "Put" && name != "Add" && name != "Upload", tells: true}
	cc, opts := pick(c.draw, c.conns...), []grpc.CallOption(nil)
	if c.draw.IntN(4) == 0 {
		opts = append(opts, grpc.WaitForReady(true))
	}
	if unary {
		c.unary(a, cc, of+name, opts)
		return
	}
	got, err := c.stream(ctx, cc, of+name, name, o, opts)
	if errors.Is(err, errLeft) {
		c.ledger.outcome(a.kind, "left")
		return
	}
	for n, text := range got {
		if want := o.piece(n); text != want && name != "Upload" {
			c.fault(a, "message %d is %.20q", n, text)
		}
	}
	switch {
	case err != nil:
		c.ledger.outcome(a.kind, c.judgeStatus(a, err))
	case o.code != 0:
		c.fault(a, "OK")
	case name == "Upload" && (len(got) != 1 || got[0] != strconv.Itoa(o.pieces)):
		c.fault(a, "%q messages arrived", got)
	case name != "Upload" && len(got) != o.pieces:
		c.fault(a, "%d messages, and no error", len(got))
	default:
		c.ledger.outcome(a.kind, "OK")
	}
}

// unary makes an RPC of one message each way.
func (c *client) unary(a asked, cc grpc.ClientConnInterface, method string, opts []grpc.CallOption) {
	var header metadata.MD
	reply := new(wrapperspb.StringValue)
	err := cc.Invoke(a.ctx, method, wrapperspb.String(a.String()), reply, append(opts, grpc.Header(&header))...)
	if err != nil {
		c.ledger.outcome(a.kind, c.judgeStatus(a, err))
		return
	}
	age := ""
	if ages := header.Get("age"); len(ages) > 0 {
		age = ages[0]
	}
	answer, want := c.judgeMark(a, header.Get("cache-status"), age), a.piece(0)
	switch answer {
	case "":
		if ids := header.Get(idField); a.code != 0 || len(ids) != 1 || ids[0] != a.id {
			c.fault(a, "OK, of %v", ids)
		}
		answer = "OK"
	case computedText:
		want = computedText
	}
	if reply.GetValue() != want {
		c.fault(a, "%s: %.20q", answer, reply.GetValue())
	}
	c.ledger.outcome(a.kind, answer)
}

var errLeft = errors.New("the caller has left")

// stream makes a streaming RPC and returns what it received.
func (c *client) stream(ctx context.Context, cc grpc.ClientConnInterface, method, name string, o order, opts []grpc.CallOption) (got []string, err error) {
	desc := &grpc.StreamDesc{ServerStreams: name != "Upload", ClientStreams: name != "Feed"}
	s, err := cc.NewStream(ctx, desc, method, opts...)
	if err != nil {
		return nil, err
	}
	leaves := -1
	if c.draw.IntN(10) == 0 {
		leaves = c.draw.IntN(3)
	}
	send := func(text string) error {
		if err := s.SendMsg(wrapperspb.String(text)); err != nil && err != io.EOF {
			return err
		}
		return nil // RecvMsg knows more
	}
	if err := send(o.String()); err != nil {
		return nil, err
	}
	if desc.ClientStreams {
		for n := range o.pieces {
			if err := send(o.piece(n)); err != nil {
				return nil, err
			}
		}
	}
	if err := s.CloseSend(); err != nil {
		return nil, err
	}
	if c.draw.IntN(4) == 0 {
		if _, err := s.Header(); err != nil {
			return nil, err
		}
	}
	for {
		if len(got) == leaves {
			return nil, errLeft // unread; its context is about to end
		}
		m := new(wrapperspb.StringValue)
		switch err := s.RecvMsg(m); {
		case err == io.EOF:
			return got, nil
		case err != nil:
			return got, err
		}
		if got = append(got, m.GetValue()); !desc.ServerStreams {
			return got, nil
		}
	}
}
