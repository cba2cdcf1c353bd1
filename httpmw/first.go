package httpmw

import (
	"bytes"
	"io"
	"net/http"
)

// awaitFirst reads a body until its first message is there, and puts back what it
// has read. A body that ends has arrived, if empty.
func awaitFirst(resp *http.Response, arrived func(*http.Response, []byte) bool) error {
	var buf [4 << 10]byte
	var read []byte
	for {
		n, err := resp.Body.Read(buf[:])
		read = append(read, buf[:n]...)
		if err != nil && err != io.EOF {
			return err
		}
		if err == io.EOF || len(read) > drainSize || n > 0 && (arrived == nil || arrived(resp, read)) {
			resp.Body = &prefixed{read, err, resp.Body}
			return nil
		}
	}
}

// FirstEvent is for [WithFirstMessage]: in a stream of server-sent events
// (text/event-stream) it waits for the first line of data, past comments and
// fields that only keep the connection alive; in any other body for the first
// byte.
func FirstEvent(resp *http.Response, read []byte) bool {
	kind, _, _ := bytes.Cut([]byte(resp.Header.Get("Content-Type")), []byte(";"))
	if !bytes.EqualFold(bytes.TrimSpace(kind), []byte("text/event-stream")) {
		return true
	}
	// A line ends in CR, LF or both; what comes after the last end may go on.
	for line := range bytes.FieldsFuncSeq(read[:lastLineEnd(read)], func(r rune) bool { return r == '\r' || r == '\n' }) {
		if bytes.HasPrefix(line, []byte("data:")) {
			return true
		}
	}
	return false
}

func lastLineEnd(b []byte) int { return bytes.LastIndexAny(b, "\r\n") + 1 }

// prefixed is a body whose first bytes, and the error that came with them, were
// read already.
type prefixed struct {
	first []byte
	err   error
	io.ReadCloser
}

func (b *prefixed) Read(p []byte) (int, error) {
	if len(b.first) > 0 {
		n := copy(p, b.first)
		b.first = b.first[n:]
		return n, nil
	}
	if b.err != nil {
		return 0, b.err
	}
	return b.ReadCloser.Read(p)
}
