package httpmw

import (
	"io"
	"sync"
)

// spool is a body without GetBody. What an attempt reads of it is kept up to a limit,
// so that the next one can read it again and then go on with the rest.
type spool struct {
	body  io.ReadCloser // the caller's
	limit int64         // of what is kept

	mu     sync.Mutex // guards what follows: a transport may read and close late
	reader *spoolReader
	kept   []byte // read from body so far, unless lost
	lost   bool   // more was read than may be kept
	last   bool   // no further attempt: the reader's Close is the body's
}

// open returns the body from its start, for the attempt that begins.
func (s *spool) open() *spoolReader {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.reader = &spoolReader{spool: s}
	return s.reader
}

// whole reports whether all that was read so far can be read again.
func (s *spool) whole() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return !s.lost
}

// finish says that no further attempt follows.
func (s *spool) finish() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.last = true; s.reader.closed {
		s.body.Close()
	}
}

// spoolReader reads the body from its start for one attempt: out of what was kept and
// then from the body itself.
type spoolReader struct {
	spool  *spool
	offset int
	closed bool // guarded by spool.mu
}

func (r *spoolReader) Read(p []byte) (int, error) {
	s := r.spool
	s.mu.Lock()
	if r.offset < len(s.kept) {
		n := copy(p, s.kept[r.offset:])
		r.offset += n
		s.mu.Unlock()
		return n, nil
	}
	s.mu.Unlock()
	n, err := s.body.Read(p)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.last || s.lost || int64(len(s.kept)+n) > s.limit {
		s.lost = s.lost || n > 0
		s.kept = nil
		r.offset = 0
		return n, err
	}
	s.kept = append(s.kept, p[:n]...)
	r.offset += n
	return n, err
}

// Close closes the body itself only if no further attempt follows.
func (r *spoolReader) Close() error {
	s := r.spool
	s.mu.Lock()
	defer s.mu.Unlock()
	if r.closed = true; s.last && r == s.reader {
		return s.body.Close()
	}
	return nil
}
