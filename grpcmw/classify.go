package grpcmw

import (
	"context"
	"errors"
	"io"
	"strings"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/call"
)

// evidence is what is known of an attempt beside its error.
type evidence struct {
	reached bool // its options provably reached gRPC, so the rest is the truth
	stream  bool // a transport took the RPC
	trailer metadata.MD
	header  metadata.MD // nil if it was not asked for
	asked   bool        // the header was
}

// classify is the one place where the end of an attempt is judged. ctx is the
// attempt's own; whether it was the caller or a limit that ended it is for the
// kit to say.
func classify(ctx context.Context, err error, ev evidence) call.Result {
	if err == nil {
		return call.Result{Class: call.OK}
	}
	if err == io.EOF {
		err = ev.lostStatus()
	}
	code, text := codeOf(err)
	res := call.Result{Err: err, Code: int(code), NotSent: ev.notSent(code, text)}
	switch {
	case closedHere(err):
		res.Class = call.Permanent
		return res
	case holdfast.Refused(err):
		res.Class = call.Refused
		return res
	case ev.madeHere(code, text):
		res.Class = call.Permanent
		return res
	}
	switch code {
	case codes.InvalidArgument, codes.NotFound, codes.AlreadyExists, codes.PermissionDenied, codes.Unauthenticated,
		codes.FailedPrecondition, codes.OutOfRange, codes.Aborted, codes.Unimplemented:
		res.Class = call.ClientFault
	case codes.ResourceExhausted:
		res.Class = call.Throttled
		// The server says the same of a request that is too large for it.
		res.NoRetry = tooLarge(text)
	case codes.Internal, codes.Unknown:
		res.Class = call.ServerFault
	case codes.DataLoss:
		res.Class, res.NoRetry = call.ServerFault, true
	case codes.Unavailable:
		res.Class = call.Unavailable
	case codes.DeadlineExceeded:
		res.Class = call.TimedOut
		awaitDeadline(ctx)
	case codes.Canceled:
		res.Class = call.Canceled
		if ctx.Err() == nil {
			// Nobody here cancelled: a server or a proxy that gave up says so.
			res.Class, res.NoRetry = call.ServerFault, true
		}
	default:
		res.Class, res.NoRetry = call.ServerFault, true
	}
	return res
}

// closedHere reports whether the connection was closed by its owner. The code,
// Canceled, is also what a server or the caller's context may cause.
func closedHere(err error) bool {
	//lint:ignore SA1019 Nothing else tells this end from the others.
	return errors.Is(err, grpc.ErrClientConnClosing)
}

// codeOf returns the code and the message of an error's status. An error without
// one is a context's, or of unknown code.
func codeOf(err error) (codes.Code, string) {
	if st := statusOf(err); st != nil {
		return st.Code(), st.Message()
	}
	return codes.Unknown, err.Error()
}

// gRPC itself repeats, once, a stream that the server has not processed. If that
// one meets a connection that is being closed as well, this exact text is the only
// sign; a server may send it as its own status, but then there is a content-type.
// A stream that the server has refused twice, with REFUSED_STREAM, counts as sent:
// the text says what ended the stream, and nothing of what came before.
const textDraining = "the connection is draining"

// lostStatus is the end of an RPC that is said to have ended with a bare io.EOF.
// So gRPC ends a unary one if the server ends the stream that gRPC has just
// opened again on its own, before the request is sent again; what the server said
// cannot be seen any more. An interceptor further in may say it as well.
func (ev evidence) lostStatus() error {
	if ev.answered() {
		return errLostAnswer
	}
	return errLostStream
}

var (
	errLostAnswer = status.Error(codes.Unknown, "grpcmw: the server answered before it was sent the request, and gRPC has lost its status")
	errLostStream = status.Error(codes.Unavailable, "grpcmw: the stream ended before the request was sent, and gRPC has lost the reason")
)

// notSent reports whether the server provably did not see the RPC. In doubt it
// did.
func (ev evidence) notSent(code codes.Code, text string) bool {
	switch {
	case !ev.reached:
		return false
	case !ev.stream:
		return true
	}
	return ev.asked && !ev.answered() && code == codes.Unavailable && text == textDraining
}

// answered reports whether the status came from a gRPC server.
func (ev evidence) answered() bool {
	return len(ev.trailer["content-type"]) > 0 || len(ev.header["content-type"]) > 0
}

// madeHere reports whether the failure is the client's own: what it was told to
// send cannot be sent, or it takes no reply as large as this one. Nothing is said
// about the dependency then, and a repeat ends the same.
func (ev evidence) madeHere(code codes.Code, text string) bool {
	if ev.reached && !ev.stream {
		switch code {
		case codes.Unavailable, codes.DeadlineExceeded, codes.Canceled, codes.ResourceExhausted:
			return false // no connection, or a balancer's word
		}
		return true // metadata, credentials, a compressor, a codec
	}
	if len(ev.trailer["content-type"]) > 0 {
		return false // an answer without a message: the server's own words
	}
	return soundsLocal(code, text)
}

// doubt makes the interceptors collect proof from now on, once an attempt without
// any has ended with what may be the client's own failure or the server's word. It
// costs a call some allocations, and most never meet such an end.
func (i *Interceptors) doubt(err error) {
	if err == nil || i.doubted.Load() {
		return
	}
	if code, text := codeOf(err); err == io.EOF || soundsLocal(code, text) {
		i.doubted.Store(true)
	}
}

func soundsLocal(code codes.Code, text string) bool {
	for _, start := range localTexts[code] {
		if strings.HasPrefix(text, start) {
			return true
		}
	}
	return false
}

// localTexts holds how the texts of the client's own failures begin; of most
// there is no other sign, and of none where no proof was collected.
var localTexts = map[codes.Code][]string{
	codes.ResourceExhausted: {
		"trying to send message larger than max",
		"grpc: message too large",
		textTooLarge,
		"grpc: message after decompression larger than max",
		"grpc: received message after decompression larger than max",
	},
	codes.Internal: {
		"grpc: error while marshaling",
		"grpc: error while compressing",
		"grpc: Compressor is not installed",
		"SendMsg called after CloseSend",
		"header key ",
		"there is an empty key in the header",
		"header list size to send violates",
		"no codec registered for content-subtype",
		"transport: per-RPC creds failed",
		"transport: received per-RPC creds error",
	},
	codes.Unauthenticated: {
		"transport: per-RPC creds failed",
		"transport: cannot send secure credentials",
	},
}

const textTooLarge = "grpc: received message larger than max"

func tooLarge(text string) bool { return strings.HasPrefix(text, textTooLarge) }

// A server's clock may notice the deadline of an RPC a moment before ours does.
// Who set it can be told only once it has passed here too.
const clockSkew = 5 * time.Millisecond

func awaitDeadline(ctx context.Context) {
	deadline, ok := ctx.Deadline()
	if !ok || ctx.Err() != nil || time.Until(deadline) > clockSkew {
		return
	}
	timer := time.NewTimer(2 * clockSkew)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-timer.C:
	}
}

// idempotencyKey is the metadata of a call that may be repeated because the
// server tells repeats by it.
const idempotencyKey = "idempotency-key"

func keyed(ctx context.Context) bool {
	for _, value := range metadata.ValueFromOutgoingContext(ctx, idempotencyKey) {
		if value != "" {
			return true
		}
	}
	return false
}
