package holdfast

import "github.com/holdfast-go/holdfast/breaker"

// join makes the kit's breakers a part of a fleet, if s is not nil.
func (k *Kit) join(s *breaker.Sharing) (err error) {
	if s != nil {
		k.fleet, err = breaker.Join(k.sharing(*s))
	}
	return err
}

// sharing returns s with the name of the kit where it names no space.
func (k *Kit) sharing(s breaker.Sharing) breaker.Sharing {
	if s.Space == "" {
		s.Space = k.name
	}
	return s
}

// Fleet returns the kit's part in the fleet that Config.Shared names, to force a
// circuit open for all workers, say, by a breaker's name, or to read how the
// store does. It is nil without Config.Shared.
func (k *Kit) Fleet() *breaker.Fleet { return k.fleet }
