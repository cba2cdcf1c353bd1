package policyfile

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"unicode/utf8"
)

// maxDepth is how deep values may be nested; a policy needs six levels.
const maxDepth = 50

// jsonReader turns a JSON text into nodes.
type jsonReader struct {
	data []byte
	dec  *json.Decoder

	// Where the offset lies that was last asked for: lines and characters before it.
	offset, lines, chars int
}

// parseJSON reads the one value of a JSON file.
func parseJSON(data []byte) (*node, *Fault) {
	r := jsonReader{data: data, dec: json.NewDecoder(bytes.NewReader(data))}
	r.dec.UseNumber()
	n, err := r.node(0)
	if err == nil {
		at := r.next()
		if _, err = r.dec.Token(); err == nil {
			return nil, faultAt(at, "something follows the end of the file's one value")
		} else if errors.Is(err, io.EOF) {
			return n, nil
		}
	}
	at := r.next()
	if syntax, ok := errors.AsType[*json.SyntaxError](err); ok && syntax.Offset > r.dec.InputOffset() {
		at = r.at(int(syntax.Offset) - 1) // within a token
	} else if errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, io.EOF) {
		at, err = r.at(len(data)), errors.New("the file ends early")
	}
	return nil, faultAt(at, "is no JSON: %v", err)
}

// at returns the place of an offset. It counts on from the last one, or a long file
// would be read again for each of its values.
func (r *jsonReader) at(offset int) place {
	offset = min(offset, len(r.data))
	if offset < r.offset {
		r.offset, r.lines, r.chars = 0, 0, 0
	}
	part := r.data[r.offset:offset]
	if last := bytes.LastIndexByte(part, '\n'); last >= 0 {
		r.lines, r.chars = r.lines+bytes.Count(part, []byte{'\n'}), 0
		part = part[last+1:]
	}
	r.offset, r.chars = offset, r.chars+utf8.RuneCount(part)
	return place{r.lines + 1, r.chars + 1}
}

// next returns the place of the next token.
func (r *jsonReader) next() place {
	i := int(r.dec.InputOffset())
	for i < len(r.data) && bytes.IndexByte([]byte(" \t\r\n,:"), r.data[i]) >= 0 {
		i++
	}
	return r.at(i)
}

func (r *jsonReader) node(depth int) (*node, error) {
	n := &node{place: r.next()}
	if depth > maxDepth {
		return nil, fmt.Errorf("values are nested deeper than %d", maxDepth)
	}
	token, err := r.dec.Token()
	if err != nil {
		return nil, err
	}
	switch v := token.(type) {
	case nil:
		n.text = "null"
	case bool:
		n.kind, n.text = boolean, fmt.Sprint(v)
	case json.Number:
		n.kind, n.text = number, v.String()
	case string:
		n.kind, n.text = text, v
	case json.Delim:
		n.kind = sequence
		if v == '{' {
			n.kind = mapping
		}
		for r.dec.More() {
			var p pair
			if n.kind == mapping {
				if p.key, err = r.node(depth + 1); err != nil {
					return nil, err
				}
			}
			if p.value, err = r.node(depth + 1); err != nil {
				return nil, err
			}
			if n.kind == mapping {
				n.pairs = append(n.pairs, p)
			}
		}
		_, err = r.dec.Token() // what closes it
	}
	return n, err
}
