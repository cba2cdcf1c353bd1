package httpmw

import (
	"bytes"
	"crypto/rand"
	"encoding/binary"
	"net/http"
	"slices"

	"github.com/holdfast-go/holdfast/internal/answers"
)

// The forms of what is stored under a key: a response, or what its variants
// depend on. Numbers are varints, texts and lists go in with their length.
const (
	formResponse = 'R'
	formVariants = 'V'
)

// asBody is the stored length of a response that is as long as its body. That of an
// answer to HEAD is another.
const asBody int64 = -2

// encodeHead returns the first part of a stored response: all but its body.
func encodeHead(resp *http.Response) []byte {
	b := []byte{formResponse}
	b = binary.AppendUvarint(b, uint64(resp.StatusCode))
	b = binary.AppendUvarint(b, uint64(max(resp.ProtoMajor, 0)))
	b = binary.AppendUvarint(b, uint64(max(resp.ProtoMinor, 0)))
	length := asBody
	if bodyless(resp) {
		length = max(resp.ContentLength, -1)
	}
	b = binary.AppendVarint(b, length)
	uncompressed := byte(0)
	if resp.Uncompressed {
		uncompressed = 1
	}
	b = append(b, uncompressed)
	b = appendText(b, resp.Status)
	b = appendText(b, resp.Proto)
	return appendHeader(b, storedHeader(resp.Header))
}

// encodeRest returns the whole of a stored response.
func encodeRest(head, body []byte, trailer http.Header) []byte {
	b := make([]byte, 0, len(head)+len(body)+binary.MaxVarintLen64+1)
	b = append(b, head...)
	b = appendText(b, body)
	return appendHeader(b, storedHeader(trailer))
}

func appendText[T string | []byte](b []byte, text T) []byte {
	return append(binary.AppendUvarint(b, uint64(len(text))), text...)
}

func appendHeader(b []byte, h http.Header) []byte {
	b = binary.AppendUvarint(b, uint64(len(h)))
	for name, values := range h {
		b = appendList(appendText(b, name), values)
	}
	return b
}

func appendList(b []byte, list []string) []byte {
	b = binary.AppendUvarint(b, uint64(len(list)))
	for _, text := range list {
		b = appendText(b, text)
	}
	return b
}

// decodeResponse reads a stored response. Only the body shares b, which nobody
// changes. It returns false for anything else.
func decodeResponse(b []byte) (resp *http.Response, ok bool) {
	d := decoder{b: b}
	if d.byte() != formResponse {
		return nil, false
	}
	resp = &http.Response{}
	resp.StatusCode = int(d.number(999))
	resp.ProtoMajor, resp.ProtoMinor = int(d.number(9)), int(d.number(9))
	resp.ContentLength = d.signed()
	resp.Uncompressed = d.byte() == 1
	resp.Status, resp.Proto = string(d.text()), string(d.text())
	resp.Header = d.header()
	body := d.text()
	resp.Trailer = d.header()
	if d.broken || len(d.b) > 0 || resp.StatusCode < 200 || resp.ContentLength < asBody {
		return nil, false
	}
	if len(resp.Trailer) == 0 {
		resp.Trailer = nil
	}
	if resp.ContentLength == asBody {
		resp.ContentLength = int64(len(body))
	}
	resp.Body = http.NoBody
	if len(body) > 0 {
		resp.Body = &replay{rest: *bytes.NewReader(body)}
	}
	return resp, true
}

// replay is the body of a stored response. It hands its memory to nobody: that is
// shared.
type replay struct {
	rest   bytes.Reader
	closed bool
}

func (r *replay) Read(p []byte) (int, error) {
	if r.closed {
		return 0, http.ErrBodyReadAfterClose
	}
	return r.rest.Read(p)
}

func (r *replay) Close() error {
	r.closed = true
	return nil
}

// variants is what the answers to a request vary with.
type variants struct {
	nonce string // those of another index are not found through this one
	names []string
}

func newVariants(names []string) variants { return variants{rand.Text(), names} }

func (v variants) encode() []byte {
	return appendList(appendText([]byte{formVariants}, v.nonce), v.names)
}

func decodeVariants(b []byte) (v variants, ok bool) {
	d := decoder{b: b}
	if d.byte() != formVariants {
		return variants{}, false
	}
	v.nonce, v.names = string(d.text()), d.list()
	return v, !d.broken && len(d.b) == 0
}

// key returns the key of the variant for a request.
func (v variants) key(of answers.Key, h http.Header) answers.Key {
	part := of.Part()
	part.Add(v.nonce)
	for _, name := range v.names {
		part.Add(name)
		part.AddList(h[name])
	}
	return part.Key()
}

// decoder takes a stored form apart. Once broken it returns zeros.
type decoder struct {
	b      []byte
	broken bool
}

func (d *decoder) fail() { d.broken, d.b = true, nil }

func (d *decoder) byte() byte {
	if len(d.b) == 0 {
		d.fail()
		return 0
	}
	c := d.b[0]
	d.b = d.b[1:]
	return c
}

func (d *decoder) number(most uint64) uint64 {
	n, size := binary.Uvarint(d.b)
	if size <= 0 || n > most {
		d.fail()
		return 0
	}
	d.b = d.b[size:]
	return n
}

func (d *decoder) signed() int64 {
	n, size := binary.Varint(d.b)
	if size <= 0 {
		d.fail()
		return 0
	}
	d.b = d.b[size:]
	return n
}

// length reads a length that what is left can have: each of its elements takes a byte.
func (d *decoder) length() int { return int(d.number(uint64(len(d.b)))) }

func (d *decoder) text() []byte {
	n := d.length()
	if n > len(d.b) {
		d.fail()
		return nil
	}
	text := d.b[:n:n]
	d.b = d.b[n:]
	return text
}

func (d *decoder) list() []string {
	n := d.length()
	list := make([]string, 0, min(n, 16))
	for ; n > 0 && !d.broken; n-- {
		list = append(list, string(d.text()))
	}
	return slices.Clip(list)
}

func (d *decoder) header() http.Header {
	n := d.length()
	h := make(http.Header, min(n, 32))
	for ; n > 0 && !d.broken; n-- {
		name := string(d.text())
		h[name] = d.list()
	}
	return h
}
