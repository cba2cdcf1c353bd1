package policyfile

import (
	"reflect"
	"strings"
	"sync"
	"time"
	"unicode"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/breaker"
	"github.com/holdfast-go/holdfast/bulkhead"
	"github.com/holdfast-go/holdfast/call"
	"github.com/holdfast-go/holdfast/fallback"
	"github.com/holdfast-go/holdfast/retry"
	"github.com/holdfast-go/holdfast/timeout"
)

// shape is the form of a value. The shapes are made from the kit's own types, so
// that whatever a policy can hold a file can, if it is data: fields of functions and
// the like are left out.
type shape struct {
	is     form
	typ    reflect.Type // of the value, without the pointer
	fields []field      // of a group
	words  []word       // that may stand in the value's place
	zero   bool         // a written 0 has a meaning of its own
}

type field struct {
	name  string // as in a file
	index int    // in the Go type
	goes  string // the Go name
	*shape
}

// word is a text that stands for a value.
type word struct {
	text  string
	value reflect.Value
}

type form uint8

const (
	group form = iota
	wordsOnly
	toggle
	integer
	decimal
	duration
)

var formNames = []string{
	"a group of fields", "a word", "true or false", "an integer", "a number", "a duration such as 1.5s or 200ms",
}

// onlyWords are layers of which a file can only say that they are off.
var onlyWords = map[reflect.Type]bool{reflect.TypeFor[fallback.Policy](): true}

// ofType holds the words that stand for a whole value.
var ofType = map[reflect.Type][]word{
	reflect.TypeFor[fallback.Policy](): {{"off", reflect.ValueOf(*fallback.Off())}},
	reflect.TypeFor[retry.Policy]():    {{"off", reflect.ValueOf(*retry.Off())}},
	reflect.TypeFor[breaker.Config]():  {{"off", reflect.ValueOf(*breaker.Off())}},
	reflect.TypeFor[timeout.Limits]():  {{"off", reflect.ValueOf(*timeout.Off())}},
	reflect.TypeFor[bulkhead.Config](): {{"off", reflect.ValueOf(*bulkhead.Off())}},
	reflect.TypeFor[retry.Backoff]():   {{"none", reflect.ValueOf(retry.NoWait())}},
	reflect.TypeFor[retry.Budget]():    {{"none", reflect.ValueOf(retry.NoBudget())}},
	reflect.TypeFor[call.Safety]():     named(call.Unsafe),
	reflect.TypeFor[breaker.Scope]():   named(breaker.PerTarget),
	reflect.TypeFor[bulkhead.Scope]():  named(bulkhead.PerTarget),
	reflect.TypeFor[retry.Jitter]():    named(retry.FullJitter),
}

// ofField holds the words that a field has beside those of its type, by the name of
// its type and its own.
var ofField = map[string][]word{
	"retry.Policy.MaxAttempts": {{"unlimited", reflect.ValueOf(retry.Unlimited)}},
	"breaker.Config.Jitter":    {{"none", reflect.ValueOf(float64(breaker.NoJitter))}},
}

// zeroMeans holds the fields in which a written 0 says what leaving the field out
// says, and nothing else could be meant.
var zeroMeans = map[string]bool{
	"timeout.Limits.Total": true, "timeout.Limits.Attempt": true, "timeout.Limits.FirstMessage": true,
	"timeout.Limits.Idle": true, "timeout.Limits.Floor": true,
	"bulkhead.Config.Queue": true, "bulkhead.Config.MaxWait": true,
}

// named returns the values of an enumeration from the first on, by their names.
func named[T interface {
	~uint8
	String() string
}](first T) []word {
	var words []word
	for v := first; !strings.Contains(v.String(), "("); v++ {
		words = append(words, word{v.String(), reflect.ValueOf(v)})
	}
	return words
}

// policyShape returns the shape of a policy.
var policyShape = sync.OnceValue(func() *shape {
	s, _ := shapeOf(reflect.TypeFor[holdfast.Policy]())
	return s
})

// shapeOf returns the shape of a type, and whether its values are data.
func shapeOf(t reflect.Type) (*shape, bool) {
	if t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	s := &shape{typ: t, words: ofType[t]}
	switch {
	case t == reflect.TypeFor[time.Duration]():
		s.is = duration
	case onlyWords[t], s.words != nil && t.Kind() == reflect.Uint8:
		s.is = wordsOnly
	case t.Kind() == reflect.Bool:
		s.is = toggle
	case t.Kind() == reflect.Int:
		s.is = integer
	case t.Kind() == reflect.Float64:
		s.is = decimal
	case t.Kind() == reflect.Struct:
		s.fields = fieldsOf(t)
		return s, len(s.fields) > 0
	default:
		return nil, false
	}
	return s, true
}

func fieldsOf(t reflect.Type) []field {
	var fields []field
	for i := range t.NumField() {
		f := t.Field(i)
		s, data := shapeOf(f.Type)
		if !f.IsExported() || !data {
			continue
		}
		s.words = append(s.words[:len(s.words):len(s.words)], ofField[t.String()+"."+f.Name]...)
		s.zero = zeroMeans[t.String()+"."+f.Name]
		fields = append(fields, field{snake(f.Name), i, f.Name, s})
	}
	return fields
}

// snake returns a Go name as a file has it.
func snake(name string) string {
	var b strings.Builder
	for i, r := range name {
		if unicode.IsUpper(r) && i > 0 {
			b.WriteByte('_')
		}
		b.WriteRune(unicode.ToLower(r))
	}
	return b.String()
}

// String says what a value of the shape may be.
func (s *shape) String() string {
	var words []string
	for _, w := range s.words {
		words = append(words, w.text)
	}
	switch {
	case s.is == wordsOnly:
		return either(words)
	case len(words) > 0:
		return formNames[s.is] + ", or " + either(words)
	}
	return formNames[s.is]
}

func either(words []string) string {
	if last := len(words) - 1; last > 0 {
		return strings.Join(words[:last], ", ") + " or " + words[last]
	}
	return strings.Join(words, "")
}
