package httpmw

import (
	"context"
	"net/http/httptrace"
	"sync/atomic"
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
type sendTrace struct {
	connecting, connected atomic.Bool
}

// on returns ctx with the trace in it, beside one of the caller's.
func (s *sendTrace) on(ctx context.Context) context.Context {
	return httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{
		GetConn: func(string) { s.connecting.Store(true) },
		GotConn: func(httptrace.GotConnInfo) { s.connected.Store(true) },
	})
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
