// Package memframes is a server of bare HTTP/2 frames on an in-memory wire, for what
// no well-behaved server does; see package memnet.
package memframes

import (
	"bytes"
	"errors"
	"io"
	"net"
	"sync"
	"testing/synctest"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"

	"github.com/holdfast-go/holdfast/internal/memnet"
)

// Answer writes what the server does with a stream. An error, such as io.EOF, closes
// the connection.
type Answer func(f *http2.Framer, stream uint32) error

// Server answers each new stream by the next of its steps, the last one for ever, and
// keeps what came of each stream's body.
type Server struct {
	// Wire has the switches and the counts.
	Wire *memnet.Listener

	steps []Step

	mu     sync.Mutex
	bodies []*bytes.Buffer // by stream, in the order of their headers
}

// Step is the answer to a stream.
type Step struct {
	Answer Answer
	Late   bool // when the request's body has come, not at its headers
}

// Serve starts a server on a port of memnet.Host, inside a bubble of testing/synctest.
// It is closed at tb's clean-up.
func Serve(tb memnet.TB, port string, steps ...Step) *Server {
	tb.Helper()
	s := &Server{Wire: memnet.Listen(net.JoinHostPort(memnet.Host, port)), steps: steps}
	go func() {
		for {
			c, err := s.Wire.Accept()
			if err != nil {
				return
			}
			go s.serve(c)
		}
	}()
	tb.Cleanup(func() {
		_ = s.Wire.Close()
		s.Wire.Reset()
		synctest.Wait()
	})
	return s
}

// Bodies returns what has come of the bodies, one for each stream.
func (s *Server) Bodies() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	all := make([]string, 0, len(s.bodies))
	for _, body := range s.bodies {
		all = append(all, body.String())
	}
	return all
}

// Streams returns how many streams there have been.
func (s *Server) Streams() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.bodies)
}

func (s *Server) serve(c net.Conn) {
	defer c.Close()
	if _, err := io.ReadFull(c, make([]byte, len(http2.ClientPreface))); err != nil {
		return
	}
	f := http2.NewFramer(c, c)
	if f.WriteSettings() != nil {
		return
	}
	numbers := map[uint32]int{} // of the connection's streams, among all
	for {
		frame, err := f.ReadFrame()
		if err != nil {
			return
		}
		switch frame := frame.(type) {
		case *http2.SettingsFrame:
			if !frame.IsAck() {
				err = f.WriteSettingsAck()
			}
		case *http2.HeadersFrame:
			numbers[frame.StreamID] = s.begin()
			err = s.answer(f, frame.StreamID, numbers[frame.StreamID], false)
			if err == nil && frame.StreamEnded() {
				err = s.answer(f, frame.StreamID, numbers[frame.StreamID], true)
			}
		case *http2.DataFrame:
			s.keep(numbers[frame.StreamID], frame.Data())
			if frame.StreamEnded() {
				err = s.answer(f, frame.StreamID, numbers[frame.StreamID], true)
			}
		}
		if err != nil {
			return
		}
	}
}

// begin returns the number of a new stream.
func (s *Server) begin() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.bodies = append(s.bodies, new(bytes.Buffer))
	return len(s.bodies) - 1
}

func (s *Server) keep(number int, data []byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.bodies[number].Write(data)
}

func (s *Server) answer(f *http2.Framer, stream uint32, number int, late bool) error {
	if step := s.steps[min(number, len(s.steps)-1)]; step.Late == late {
		return step.Answer(f, stream)
	}
	return nil
}

// Reset ends a stream with a code.
func Reset(code http2.ErrCode) Answer {
	return func(f *http2.Framer, stream uint32) error { return f.WriteRSTStream(stream, code) }
}

// GoAway sends the connection away: no stream of it was processed.
func GoAway(code http2.ErrCode) Answer {
	return func(f *http2.Framer, _ uint32) error { return f.WriteGoAway(0, code, nil) }
}

// Close closes the connection.
func Close(*http2.Framer, uint32) error { return io.EOF }

// Headers sends headers, given as names and values in turn. With end they end the
// stream.
func Headers(end bool, fields ...string) Answer {
	return func(f *http2.Framer, stream uint32) error {
		var block bytes.Buffer
		e := hpack.NewEncoder(&block)
		for i := 0; i+1 < len(fields); i += 2 {
			if err := e.WriteField(hpack.HeaderField{Name: fields[i], Value: fields[i+1]}); err != nil {
				return err
			}
		}
		return f.WriteHeaders(http2.HeadersFrameParam{StreamID: stream, BlockFragment: block.Bytes(), EndHeaders: true, EndStream: end})
	}
}

// All does one after the other, whatever the first returns.
func All(answers ...Answer) Answer {
	return func(f *http2.Framer, stream uint32) (err error) {
		for _, answer := range answers {
			err = errors.Join(err, answer(f, stream))
		}
		return err
	}
}
