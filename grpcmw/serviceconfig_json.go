package grpcmw

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"google.golang.org/grpc/codes"

	"github.com/holdfast-go/holdfast/internal/check"
)

// piece is a value of a service config and its place in it, such as
// methodConfig[0].timeout. What is wrong is noted in faults, which all pieces of
// a config share.
type piece struct {
	at     string
	text   json.RawMessage
	faults *check.Faults
}

func (p piece) fault(want string, args ...any) {
	value := []rune(string(p.text))
	if len(value) > 40 {
		value = append(value[:40], []rune("...")...)
	}
	p.faults.Add(p.at, string(value), want, args...)
}

// readConfig returns the whole text as a piece.
func readConfig(text string, faults *check.Faults) (piece, error) {
	d := json.NewDecoder(strings.NewReader(text))
	var whole json.RawMessage
	if err := d.Decode(&whole); err != nil {
		if errors.Is(err, io.EOF) {
			err = errors.New("the text is empty")
		}
		return piece{}, err
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return piece{}, errors.New("there is more text behind the object")
	}
	return piece{text: whole, faults: faults}, nil
}

// object returns the members of an object. A null is no member. The names that
// nothing is known of, and those that come twice, are faults: gRPC passes over
// the former and takes the last of the latter.
func (p piece) object(known ...string) map[string]piece {
	d := json.NewDecoder(bytes.NewReader(p.text))
	if start, _ := d.Token(); start != json.Delim('{') {
		p.fault("must be an object")
		return nil
	}
	members := map[string]piece{}
	seen := map[string]bool{}
	for d.More() {
		token, err := d.Token()
		name, isName := token.(string)
		m := piece{at: strings.TrimPrefix(p.at+"."+name, "."), faults: p.faults}
		if err != nil || !isName || d.Decode(&m.text) != nil {
			break // the text was checked as a whole
		}
		switch {
		case seen[name]:
			m.fault("is there twice")
		case !slices.Contains(known, name):
			m.fault("is no field of a service config here; there are %s", strings.Join(known, ", "))
		case string(m.text) != "null":
			members[name] = m
		}
		seen[name] = true
	}
	return members
}

// list returns the elements of a list, which must have one.
func (p piece) list() []piece {
	var texts []json.RawMessage
	if err := json.Unmarshal(p.text, &texts); err != nil || len(texts) == 0 {
		p.fault("must be a list of at least one")
		return nil
	}
	elements := make([]piece, len(texts))
	for i, text := range texts {
		elements[i] = piece{fmt.Sprintf("%s[%d]", p.at, i), text, p.faults}
	}
	return elements
}

// str returns a string.
func (p piece) str() string {
	var s *string
	if err := json.Unmarshal(p.text, &s); err != nil || s == nil {
		p.fault("must be a string")
		return ""
	}
	return *s
}

// number returns a number above 0.
func (p piece) number() float64 {
	var x *float64
	if err := json.Unmarshal(p.text, &x); err != nil || x == nil || !(*x > 0) {
		p.fault("must be a number above 0")
		return math.NaN()
	}
	return *x
}

// boolean checks that it is one.
func (p piece) boolean() {
	var b *bool
	if err := json.Unmarshal(p.text, &b); err != nil || b == nil {
		p.fault("must be true or false")
	}
}

// attempts returns a number of attempts as gRPC proposal A6 allows it.
func (p piece) attempts() int {
	var n int
	if err := json.Unmarshal(p.text, &n); err != nil || n < 2 {
		p.fault("must be a whole number of at least 2")
		return 0
	}
	if n > maxAttemptsOfGRPC {
		p.fault("gRPC makes no more than %d attempts whatever is asked for: write how many are meant, or set Retry.MaxAttempts of the policy", maxAttemptsOfGRPC)
		return 0
	}
	return n
}

// maxAttemptsOfGRPC is the number that A6 cuts larger ones down to.
const maxAttemptsOfGRPC = 5

// code returns a status code, written as its name or its number.
func (p piece) code() codes.Code {
	var c codes.Code
	if err := json.Unmarshal(p.text, &c); err != nil || string(p.text) == "null" {
		p.fault(`must be the name of a status code, such as "UNAVAILABLE"`)
	}
	return c
}

// duration returns a length of time above 0, written in protobuf's form: "1.5s".
func (p piece) duration() time.Duration {
	var s string
	err := json.Unmarshal(p.text, &s)
	d, ok := parseSeconds(s)
	if err != nil || !ok || d <= 0 {
		p.fault(`must be a length of time above 0 in seconds, such as "1.5s"`)
		return 0
	}
	return d
}

// parseSeconds reads protobuf's JSON form of a duration. At most nine decimals
// are allowed.
func parseSeconds(s string) (time.Duration, bool) {
	number, unit := strings.CutSuffix(s, "s")
	if !unit || strings.Trim(number, "0123456789.") != "" {
		return 0, false
	}
	whole, part, _ := strings.Cut(number, ".")
	if len(part) > 9 || whole+part == "" {
		return 0, false
	}
	// The digits of the nanoseconds; it overflows beyond 292 years.
	n, err := strconv.ParseInt(whole+part+strings.Repeat("0", 9-len(part)), 10, 64)
	return time.Duration(n), err == nil
}
