package grpcmw

import (
	"context"
	"maps"
	"slices"
	"strconv"

	"google.golang.org/grpc/metadata"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/call"
)

// previousAttempts is the metadata that tells the server how many attempts came
// before this one (gRPC proposal A6). Other than what begins with "grpc-"
// usually, it may be set from here.
const previousAttempts = "grpc-previous-rpc-attempts"

// prepare is what is given each attempt's own copy of the metadata.
type prepare func(ctx context.Context, method string, attempt int, md metadata.MD) error

// adds reports whether the kit has something to add to the metadata of the n-th
// attempt, or somebody to show it to.
func adds(c *holdfast.Call, n int, prepare prepare) bool {
	return n > 1 || prepare != nil || c.Key() != "" || c.Watched()
}

// outgoing returns the context to send the n-th attempt with. If the kit has
// something to add to the metadata, it is a copy of the attempt's own.
func outgoing(ctx context.Context, c *holdfast.Call, method string, n int, prepare prepare) (context.Context, error) {
	if !adds(c, n, prepare) {
		return ctx, nil
	}
	key, watched := c.Key(), c.Watched()
	md, _ := metadata.FromOutgoingContext(ctx)
	if md == nil {
		md = metadata.MD{}
	}
	if key != "" {
		md.Set(idempotencyKey, key)
	}
	if n > 1 {
		md.Set(previousAttempts, strconv.Itoa(n-1))
	}
	if watched {
		ctx = c.Sending(ctx, n, header(md))
	}
	if prepare != nil {
		if err := prepare(ctx, method, n, md); err != nil {
			return ctx, err
		}
	}
	return metadata.NewOutgoingContext(ctx, md), nil
}

// header is an attempt's metadata as hooks see it.
type header metadata.MD

func (h header) Get(key string) string {
	if values := metadata.MD(h).Get(key); len(values) > 0 {
		return values[0]
	}
	return ""
}

func (h header) Set(key, value string) { metadata.MD(h).Set(key, value) }

func (h header) Keys() []string { return slices.Collect(maps.Keys(h)) }

// unsent is the result of an attempt that could not be made ready.
func unsent(err error) call.Result {
	if statusOf(err) == nil {
		err = &statusError{err: err, bad: true}
	}
	return call.Result{Class: call.Permanent, Err: err, NotSent: true}
}

// wantsHeader reports whether an attempt's response header decides anything. It
// costs a copy of a map.
func (i *Interceptors) wantsHeader(c *holdfast.Call) bool {
	return !c.MayRepeat() || i.config.finalBy != ""
}

// forbid marks a failure that the server does not want to see repeated, or not
// yet.
func (i *Interceptors) forbid(res call.Result, ev evidence) call.Result {
	res = pushedBack(res, ev)
	if key := i.config.finalBy; key != "" && (len(ev.trailer[key]) > 0 || len(ev.header[key]) > 0) {
		res.NoRetry = true
	}
	return res
}
