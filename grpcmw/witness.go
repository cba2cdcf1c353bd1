package grpcmw

import (
	"sync/atomic"

	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/peer"

	"github.com/holdfast-go/holdfast"
)

// witness collects, for one attempt, the proof of how far it came. Its call
// options stand beside the caller's own; each attempt has a fresh one, for gRPC
// does not touch what it does not reach.
type witness struct {
	peer     peer.Peer
	trailer  metadata.MD
	header   metadata.MD
	asked    bool        // the header is collected
	finished atomic.Bool // gRPC is done with the attempt; the rest may be read

	room [8]grpc.CallOption
}

// place is what a unary call that may be repeated needs beside its stack, in one piece:
// room for its contexts, and the witness of its first attempt.
type place struct {
	room    holdfast.UnaryRoom
	witness witness
}

// witnessOf returns the witness of the n-th attempt.
func (p *place) witnessOf(n int) *witness {
	if p != nil && n == 1 {
		return &p.witness
	}
	return new(witness)
}

// options returns the caller's options and the witness's own. The header costs a
// copy of a map, so it is collected only where it decides something.
func (w *witness) options(pass []grpc.CallOption, header bool, finish func(error)) []grpc.CallOption {
	opts := append(w.room[:0], pass...)
	opts = append(opts, grpc.PeerCallOption{PeerAddr: &w.peer}, grpc.TrailerCallOption{TrailerAddr: &w.trailer})
	if header {
		w.asked = true
		opts = append(opts, grpc.HeaderCallOption{HeaderAddr: &w.header})
	}
	return append(opts, grpc.OnFinishCallOption{OnFinish: finish})
}

// finish is to be called by gRPC, through OnFinish, when it is done with the
// attempt. That it was is the proof without which an empty peer means nothing: an
// interceptor further in may have answered by itself, or dropped the options.
func (w *witness) finish(error) { w.finished.Store(true) }

// evidence returns what the witness knows once the invoker has returned.
func (w *witness) evidence() evidence {
	if !w.finished.Load() {
		return evidence{}
	}
	return evidence{
		reached: true, stream: w.peer.Addr != nil,
		trailer: w.trailer, header: w.header, asked: w.asked,
	}
}
