package policyfile

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/call"
	"github.com/holdfast-go/holdfast/internal/check"
	"github.com/holdfast-go/holdfast/internal/wire"
	"github.com/holdfast-go/holdfast/internal/wire/grpcwire"
	"github.com/holdfast-go/holdfast/internal/wire/httpwire"
)

// maxSize is how many bytes a file may have.
const maxSize = 4 << 20

// File is what a file of policies says.
type File struct {
	Wire string // "grpc" or "http": how the names of methods are read
	holdfast.Config
}

// Load reads policies in YAML or JSON; JSON is what begins with a brace. The error
// is an [*Error] with all that is wrong, in form and in meaning, unless the reader
// itself fails. A file may have at most 4 MiB.
//
// What cannot be data is not in a file: set Hooks, Classify, a fallback or the hooks
// of a breaker on the File's Config before it is given to holdfast.New.
func Load(r io.Reader) (*File, error) {
	data, err := io.ReadAll(io.LimitReader(r, maxSize+1))
	if err != nil {
		return nil, fmt.Errorf("policyfile: %w", err)
	}
	return load(data)
}

// LoadFile is [Load] for a file of that name, which the faults then have too.
func LoadFile(name string) (*File, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, fmt.Errorf("policyfile: %w", err)
	}
	defer f.Close()
	file, err := Load(f)
	if faults, ok := errors.AsType[*Error](err); ok {
		faults.Name = name
	}
	return file, err
}

func load(data []byte) (*File, error) {
	root, isJSON, fault := parse(data)
	if fault != nil {
		return nil, failure([]*Fault{fault})
	}
	d := &decoder{places: map[string]place{}}
	f := d.root(root, !isJSON)
	d.check(f)
	if err := failure(d.faults); err != nil {
		return nil, err
	}
	return f, nil
}

// parse reads the form of a file.
func parse(data []byte) (root *node, isJSON bool, fault *Fault) {
	start := place{1, 1}
	if len(data) > maxSize {
		return nil, false, faultAt(start, "the file has more than %d bytes", maxSize)
	}
	data = bytes.TrimPrefix(data, []byte("\ufeff")) // some editors put it there
	if !utf8.Valid(data) {
		return nil, false, faultAt(invalid(data), "is no text in UTF-8")
	}
	if bytes.HasPrefix(bytes.TrimLeft(data, " \t\r\n"), []byte("{")) {
		root, fault = parseJSON(data)
		return root, true, fault
	}
	root, fault = parseYAML(data)
	return root, false, fault
}

// invalid returns the place of the first byte that is not UTF-8.
func invalid(data []byte) place {
	i := 0
	for i < len(data) {
		r, size := utf8.DecodeRune(data[i:])
		if r == utf8.RuneError && size == 1 {
			break
		}
		i += size
	}
	return (&jsonReader{data: data}).at(i)
}

// check adds what is wrong with what the file says, but for what may follow from
// fields that could not be read.
func (d *decoder) check(f *File) {
	unread := d.faults
	protocol := anyNames
	switch f.Wire {
	case "grpc":
		protocol = grpcwire.Protocol()
	case "http":
		protocol = httpwire.Protocol()
	}
	for _, fault := range check.Of(f.Config.CheckFor(protocol)) {
		placed := d.place(fault)
		if !slices.ContainsFunc(unread, func(u *Fault) bool { return placed.follows(u) }) {
			d.faults = append(d.faults, placed)
		}
	}
}

// anyNames is for a file that does not say how its names are read.
var anyNames = wire.Protocol{
	Parse:     func(name string) (string, error) { return name, nil },
	OneMethod: func(string) bool { return true },
	Declared:  func(string) call.Safety { return call.SafetyUnknown },
}

// follows reports whether f may be there because u kept a field from being read: it
// is of that field or a part of it, or says something of it in the same layer.
func (f *Fault) follows(u *Fault) bool {
	switch {
	case u.Path == "" || isEntry(u.Path):
		return false
	case f.Path == u.Path || strings.HasPrefix(u.Path, f.Path+"."):
		return !isEntry(f.Path)
	case strings.HasPrefix(f.Path, u.Path+"."):
		return f.near
	}
	name := u.Path[strings.LastIndexByte(u.Path, '.')+1:]
	return layer(f.Path) == layer(u.Path) && strings.Contains(snake(f.Text), name)
}

// isEntry reports whether a path is that of a policy.
func isEntry(path string) bool {
	return path == "default" || path == "methods" || strings.HasSuffix(path, `"]`)
}

// layer returns the part of a field's path that names an entry and its layer.
func layer(path string) string {
	rest := strings.TrimPrefix(path, "default")
	if entry := strings.LastIndex(path, `"]`); entry >= 0 {
		rest = path[entry+2:]
	}
	parts := strings.SplitN(rest, ".", 3)
	return strings.TrimSuffix(path, rest) + strings.Join(parts[:min(2, len(parts))], ".")
}
