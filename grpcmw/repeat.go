package grpcmw

import (
	"io"
	"sync"

	"google.golang.org/grpc"

	"github.com/holdfast-go/holdfast/call"
)

// repeat is what it takes to open a stream, and to open it again.
type repeat struct {
	cc       *grpc.ClientConn
	method   string
	streamer grpc.Streamer
	failover *FailoverConn // in place of cc and streamer; nil if there is one connection

	// What the caller has done so far, to be done again.
	asked   bool
	request any
	closed  bool

	used bool // the record's first try
}

// next makes attempts, the first or, after one that has ended with res, others,
// until one is open. It reports whether one is; if not, the call has ended. Either
// the caller does not have the stream yet, or s.changing is held.
func (s *stream) next(res call.Result) bool {
	r := s.record
	// Asked before Next as well: whoever ends a call that panics reads what Next writes.
	for !r.isOver() && r.call.Next(r.ctx, &res, nil) && !r.isOver() {
		r.attempts.Store(int32(r.call.Attempt()))
		r.sentBefore.Store(r.call.SentBefore())
		t := &r.first
		if s.used {
			t = &try{record: r, stream: unopened{r}}
		}
		s.used = true
		held := r.call.OpenHeld(r.ctx, &t.attempt, &res)
		if held == nil {
			continue
		}
		t.held, t.info = held, r.call.Info()
		r.call.WatchIdle(&t.attempt, false)
		r.now.Store(t)
		opened := false
		if res, opened = s.open(t); opened {
			if r.isOver() { // by a panic in another method call
				t.end(unwound, true)
				return false
			}
			return true
		}
	}
	r.conclude(r.call.CallEnd(r.call.Err()))
	return false
}

// open opens the stream of an attempt. If it fails the attempt has ended.
func (s *stream) open(t *try) (verdict call.Result, opened bool) {
	r := s.record
	pass, header := r.options.pass, false
	if r.ownTargets() {
		pass, header = r.options.withoutTargets(), r.options.targets || r.kit.wantsHeader(&r.call)
	}
	cc, streamer, prepare := s.cc, s.streamer, r.kit.config.prepare
	if s.failover != nil {
		to := s.failover.leg(&r.call, &r.options)
		cc, streamer, pass, prepare = to.cc(), to.stream, to.pass(pass), to.prepares(prepare)
	}
	ctx, err := outgoing(t.held, &r.call, r.method, r.call.Attempt(), prepare)
	if err != nil {
		verdict, _ = t.end(unsent(err), true)
		return verdict, false
	}
	if t.attempt.Probe() {
		pass = seek(cc, pass)
	}
	stream, err := streamer(ctx, s.desc, cc, s.method, t.witness.options(pass, header, t.onFinish)...)
	limit := t.attempt.Opened()
	if err == nil && limit == nil {
		if !t.attempt.AwaitsFirst() {
			t.unwatched()
		}
		t.stream = stream
		if err = s.replay(t); err == nil {
			return call.Result{}, true
		}
	}
	var res call.Result
	if err != nil {
		res = t.judge(err)
	} else { // the context is cancelled, so the stream is dead
		res = t.attempt.Judge(r.ctx, call.Result{Class: call.TimedOut, Err: limit})
	}
	verdict, _ = t.end(res, true)
	return verdict, false
}

// replay does again what the caller has done with the attempts before.
func (s *stream) replay(t *try) error {
	if s.asked {
		if err := t.stream.SendMsg(s.request); err != nil && err != io.EOF {
			return err
		}
	}
	if s.closed {
		return t.stream.CloseSend()
	}
	return nil
}

// ask sends the one request of a server's stream, and keeps it for a repeat: gRPC
// does not allow that it is changed.
func (s *stream) ask(m any) error {
	s.changing.lock()
	defer s.changing.unlock()
	if !s.settled.Load() {
		s.asked, s.request = true, m
	}
	t := s.record.now.Load()
	err := t.stream.SendMsg(m)
	if err != nil && err != io.EOF {
		_, err = s.replace(t, err) // the next one is sent the request too
	}
	return err
}

// endRequest ends what the caller sends, and keeps that for a repeat.
func (s *stream) endRequest() error {
	s.changing.lock()
	defer s.changing.unlock()
	s.closed = true
	t := s.record.now.Load()
	err := t.stream.CloseSend()
	if err != nil && err != io.EOF {
		_, err = s.replace(t, err) // the next one is told so too
	}
	return err
}

// failed ends an attempt with an error that a method of its stream has returned.
// again says that another attempt has taken its place; if not, err is what the
// caller is to see.
func (s *stream) failed(t *try, err error) (again bool, _ error) {
	s.changing.lock()
	defer s.changing.unlock()
	return s.replace(t, err)
}

// replace is failed while s.changing is held.
func (s *stream) replace(t *try, err error) (again bool, _ error) {
	r := s.record
	if r.now.Load() != t {
		return true, nil // another method call was sooner
	}
	if s.settled.Load() {
		return false, t.fail(err)
	}
	res := t.judge(err)
	verdict, first := t.end(res, true)
	if !first {
		return false, t.late(res)
	}
	if s.next(verdict) {
		return true, nil
	}
	return false, r.finalError()
}

// latch is a lock that may be held for as long as a back-off lasts. Whoever waits
// for it lets time pass in a bubble of testing/synctest, other than with a mutex.
type latch struct {
	mu   sync.Mutex
	free sync.Cond
	held bool
}

func (l *latch) lock() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.free.L = &l.mu
	for l.held {
		l.free.Wait()
	}
	l.held = true
}

func (l *latch) unlock() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.held = false
	l.free.Signal()
}
