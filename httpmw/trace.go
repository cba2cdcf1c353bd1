package httpmw

import (
	"context"
	"fmt"
	"net/http/httptrace"
	"sync/atomic"

	"github.com/holdfast-go/holdfast/internal/deadline"
)

// sent is what is known about whether an attempt's request was written.
type sent uint8

const (
	sentUnknown sent = iota
	sentNothing
	sentSomething
)

// sendTrace watches whether a request could have been written: whether it was
// given a connection. When it really is written cannot be told, for HTTP/2
// reports that only afterwards. The trace is made only where a repeat hangs on it.
//
// It also puts an end to a request that net/http repeats on and on by itself, because
// each new connection is taken from it again.
type sendTrace struct {
	hooks  httptrace.ClientTrace
	limits *deadline.Held // the attempt's context

	connecting, connected, over atomic.Bool
	made                        atomic.Int32 // connections for this request
}

// maxConnections is how many new connections an attempt may use up.
const maxConnections = 5

var errSentAway = fmt.Errorf("httpmw: the request was sent away from each of %d new connections", maxConnections)

// on returns ctx with the trace in it, beside one of the caller's.
func (s *sendTrace) on(ctx context.Context) context.Context {
	s.hooks.GetConn, s.hooks.GotConn = s.getConn, s.gotConn
	return httptrace.WithClientTrace(ctx, &s.hooks)
}

func (s *sendTrace) getConn(string) {
	s.connecting.Store(true)
	if s.made.Load() >= maxConnections {
		s.over.Store(true)
		s.limits.Release()
	}
}

func (s *sendTrace) gotConn(info httptrace.GotConnInfo) {
	s.connected.Store(true)
	if !info.Reused {
		s.made.Add(1)
	}
}

// sent returns what the trace has seen. If no connection was even asked for, the
// base may not be net/http's and nothing is known.
func (s *sendTrace) sent() sent {
	switch {
	case s == nil || !s.connecting.Load():
		return sentUnknown
	case s.connected.Load():
		return sentSomething
	}
	return sentNothing
}

// gaveUp reports whether the trace has ended the attempt.
func (s *sendTrace) gaveUp() bool { return s != nil && s.over.Load() }
