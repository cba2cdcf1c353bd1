package policyfile

import (
	"bytes"
	"errors"
	"io"
	"regexp"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
)

// parseYAML reads the one document of a YAML file.
func parseYAML(data []byte) (*node, *Fault) {
	dec := yaml.NewDecoder(bytes.NewReader(data))
	var doc, next yaml.Node
	if err := dec.Decode(&doc); errors.Is(err, io.EOF) {
		return nil, faultAt(place{1, 1}, "the file is empty; its first line is wire: grpc or wire: http")
	} else if err != nil {
		return nil, yamlFault(err)
	}
	if err := dec.Decode(&next); err == nil {
		return nil, faultAt(place{next.Line, next.Column}, "a second document begins here; a file has one")
	} else if !errors.Is(err, io.EOF) {
		return nil, yamlFault(err)
	}
	r := yamlReader{}
	return r.node(doc.Content[0]), nil
}

var (
	yamlLine   = regexp.MustCompile(`line (\d+)`)
	yamlPrefix = regexp.MustCompile(`^(yaml: )?(line \d+: )?`)
)

func yamlFault(err error) *Fault {
	at := place{1, 1}
	if m := yamlLine.FindStringSubmatch(err.Error()); m != nil {
		at.line, _ = strconv.Atoi(m[1])
	}
	return faultAt(at, "is no YAML: %s", yamlPrefix.ReplaceAllString(err.Error(), ""))
}

// yamlReader turns the library's nodes into ours. What several aliases stand for
// is read once, so that no file grows by being read.
type yamlReader map[*yaml.Node]*node

func (r yamlReader) node(y *yaml.Node) *node {
	if y.Kind == yaml.AliasNode {
		y = y.Alias
	}
	if n := r[y]; n != nil {
		return n
	}
	n := &node{place: place{y.Line, y.Column}, text: y.Value}
	r[y] = n
	if y.Style&yaml.TaggedStyle != 0 {
		n.fault = "has the tag " + y.Tag + "; tags are not read"
		return n
	}
	switch y.Kind {
	case yaml.MappingNode:
		n.kind = mapping
		for i := 0; i+1 < len(y.Content); i += 2 {
			n.pairs = append(n.pairs, pair{r.node(y.Content[i]), r.node(y.Content[i+1])})
		}
	case yaml.SequenceNode:
		n.kind = sequence
	default:
		n.kind = text
		if y.Style&(yaml.SingleQuotedStyle|yaml.DoubleQuotedStyle|yaml.LiteralStyle|yaml.FoldedStyle) == 0 {
			n.kind = plain(y.Value)
		}
	}
	return n
}

// oddNumber says what is wrong with a text that is meant as a number, "" if it
// does not look like one.
func oddNumber(s string) string {
	digits := strings.ContainsAny(s, "0123456789")
	switch t := strings.ToLower(strings.TrimLeft(s, "+-")); {
	case strings.HasPrefix(t, ".inf") || strings.HasPrefix(t, ".nan"):
		return "is no number"
	case !digits:
		return ""
	case len(t) > 1 && t[0] == '0' && t[1] != '.':
		return "may be read as decimal, octal or hexadecimal; write it in decimal, without a leading 0"
	case strings.Contains(s, "_") || strings.HasPrefix(s, "+") || strings.HasPrefix(t, ".") || strings.HasSuffix(t, "."):
		return "is no number as JSON writes them; write plain digits"
	}
	return ""
}
