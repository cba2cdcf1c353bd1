package httpmw

import (
	"io"
	"sync"
)

// recorder hands a body on as it comes, and keeps a copy of it up to a limit. If
// the body comes whole, the copy is passed on before its reader sees the end.
type recorder struct {
	io.ReadCloser
	want  int64 // its length, -1 if nobody knows
	limit int
	whole func(body []byte)

	mu   sync.Mutex // Close may come while Read waits
	copy []byte
	over bool // nothing is kept any more
}

func (r *recorder) Read(p []byte) (int, error) {
	n, err := r.ReadCloser.Read(p)
	if body, ended := r.add(p[:n], err); ended {
		r.whole(body)
	}
	return n, err
}

// Close ends a body of which the reader knew the length, and so did not read on to
// its end.
func (r *recorder) Close() error {
	err := r.ReadCloser.Close()
	if body, ended := r.add(nil, io.ErrClosedPipe); ended {
		r.whole(body)
	}
	return err
}

// add keeps a piece of the body, and returns all of it if that was the last.
func (r *recorder) add(piece []byte, err error) (body []byte, whole bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.over {
		return nil, false
	}
	if len(r.copy)+len(piece) > r.limit {
		r.over, r.copy = true, nil
		return nil, false
	}
	r.copy = append(r.copy, piece...)
	if err == nil {
		return nil, false
	}
	body = r.copy
	r.over, r.copy = true, nil
	if r.want >= 0 {
		return body, int64(len(body)) == r.want
	}
	return body, err == io.EOF
}
