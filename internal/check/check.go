// Package check collects what is wrong with a configuration, so that a user
// sees every bad field at once and each by its name.
package check

import (
	"errors"
	"fmt"
	"strings"
)

// Fault is one bad field.
type Fault struct {
	Field string // path of the field, such as "Breaker.FailureRate"
	Value any    // the value found there; nil leaves it out of the text
	Want  string // what would be valid
}

// Error returns "Field = value: want", or "Field: want" without a value.
func (f *Fault) Error() string {
	if f.Value == nil {
		return f.Field + ": " + f.Want
	}
	return fmt.Sprintf("%s = %v: %s", f.Field, f.Value, f.Want)
}

// Faults is a list of bad fields; the zero value is ready for use.
type Faults []*Fault

// Add notes that field has a bad value; want says what would be valid.
func (fs *Faults) Add(field string, value any, want string, args ...any) {
	*fs = append(*fs, &Fault{field, value, fmt.Sprintf(want, args...)})
}

// In adds the faults of a part, each field name prefixed by the part's name and
// a dot.
func (fs *Faults) In(part string, faults Faults) {
	for _, f := range faults {
		*fs = append(*fs, &Fault{part + "." + f.Field, f.Value, f.Want})
	}
}

// Err returns nil if there are no faults, or else one error whose text begins
// with the package name pkg and has a line for each fault. It unwraps to them.
func (fs Faults) Err(pkg string) error {
	if len(fs) == 0 {
		return nil
	}
	return &faultsError{pkg, fs}
}

// Of returns the faults in err, which Err has made, so that they can be added to
// those of a whole.
func Of(err error) Faults {
	if err == nil {
		return nil
	}
	return err.(*faultsError).faults
}

type faultsError struct {
	pkg    string
	faults Faults
}

func (e *faultsError) Error() string {
	text := errors.Join(e.Unwrap()...).Error()
	if !strings.Contains(text, "\n") {
		return e.pkg + ": " + text
	}
	return e.pkg + ": bad configuration\n\t" + strings.ReplaceAll(text, "\n", "\n\t")
}

func (e *faultsError) Unwrap() []error {
	errs := make([]error, len(e.faults))
	for i, f := range e.faults {
		errs[i] = f
	}
	return errs
}
