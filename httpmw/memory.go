package httpmw

import (
	"bytes"
	"io"
	"net/http"
	"reflect"
	"strings"
)

// textOf returns what a reader of memory holds, from where it stands, if an attempt's
// reader of that need not be gated: no attempt shares its reader with another, and nobody
// changes what they read. net/http knows such a reader for what it is, and sends a short
// body in one write with the headers; one behind a gate it sends in a second write.
//
// A string does not change. Bytes may as soon as the call has returned, while the
// transport of an attempt that failed may still read on: a few are copied, and of more
// the readers are gated.
func textOf(memory io.Reader) (text strings.Reader, ok bool) {
	switch r := memory.(type) {
	case *strings.Reader:
		return *r, true
	case *bytes.Reader:
		if r.Len() <= fewBytes {
			var copied strings.Builder
			copied.Grow(r.Len())
			whole := *r
			_, _ = whole.WriteTo(&copied)
			return *strings.NewReader(copied.String()), true
		}
	case *bytes.Buffer:
		if r.Len() <= fewBytes {
			return *strings.NewReader(r.String()), true
		}
	}
	return text, false
}

// skip leaves a reader of memory as one whose body was sent.
func skip(memory io.Reader) {
	switch r := memory.(type) {
	case io.Seeker:
		_, _ = r.Seek(0, io.SeekEnd)
	case *bytes.Buffer:
		r.Reset()
	}
}

// fewBytes is what net/http writes at once, unless told otherwise: a longer body gains
// nothing by being known.
const fewBytes = 4 << 10

// open returns a body over text.
func open(text strings.Reader) io.ReadCloser { return io.NopCloser(&text) }

// inMemory reports whether body is a reader of memory, of the types that net/http
// looks for too: it sends such a body in one write with the headers.
func inMemory(body io.ReadCloser) bool {
	switch inside(body).(type) {
	case *bytes.Reader, *bytes.Buffer, *strings.Reader:
		return true
	}
	return false
}

// inside returns what io.NopCloser has made a body of, or else body.
func inside(body io.ReadCloser) io.Reader {
	if t := reflect.TypeOf(body); t == nopCloser || t == nopCloserWriterTo {
		r, _ := reflect.ValueOf(body).Field(0).Interface().(io.Reader)
		return r
	}
	return body
}

var (
	nopCloser         = reflect.TypeOf(io.NopCloser(nil))
	nopCloserWriterTo = reflect.TypeOf(io.NopCloser(new(bytes.Reader)))
)

// opensAnew reports whether a GetBody is one that http.NewRequest makes for a body in
// memory: those return a new reader each time. They are known by the code that runs.
// Should the compiler have laid that down twice, one is not known and its bodies gated.
func opensAnew(getBody func() (io.ReadCloser, error)) bool {
	code := codeOf(getBody)
	return code == newRequests[0] || code == newRequests[1] || code == newRequests[2]
}

func codeOf(getBody func() (io.ReadCloser, error)) uintptr { return reflect.ValueOf(getBody).Pointer() }

// newRequests is the code of the GetBody of http.NewRequest for each type of body.
var newRequests = [...]uintptr{
	codeOfNew(strings.NewReader("a")), codeOfNew(bytes.NewReader([]byte("a"))), codeOfNew(bytes.NewBufferString("a")),
}

func codeOfNew(body io.Reader) uintptr {
	req, err := http.NewRequest(http.MethodPut, "http://localhost/", body)
	if err != nil || req.GetBody == nil {
		return 0 // no function's
	}
	return codeOf(req.GetBody)
}
