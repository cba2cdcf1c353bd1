package holdfast

import "reflect"

// Update puts c in force in the place of the kit's configuration, for every
// connection and transport that uses the kit, and keeps the state. The error names
// every bad field, a name that an adapter in use cannot read included; the old
// configuration stays whole then.
//
// A call that begins once Update has returned finds all of c, and none finds a
// part of it. A call under way ends under the policy that it began with. What it
// shares with other calls is the exception: its further attempts are admitted by
// the breaker and the bulkhead as they are then.
//
// What is kept, for each entry that sets a layer before and after:
//
//   - Breakers keep their state, their generation, the end of the cooldown that
//     runs and an operator's orders, the probes in flight their limits, and the
//     window its results; it starts empty if its kind or size is another, or if
//     slow calls are newly looked at or no longer.
//   - Under another scope, breakers and bulkheads go on whose names are still made
//     (that of the target, if both scopes have one); new names start closed.
//   - Bulkheads keep the permits that are out and who waits; an adaptive limit what
//     it has learned.
//   - Budgets keep their tokens, at most the new Cap, and hedges the latencies they
//     have seen. A budget that is shared and was not, or the other way about, or
//     that had no bounds, begins anew.
//
// A layer that is switched off, or set by another entry, leaves its state behind,
// ForceOpen included: put back, it starts closed.
//
// Name and Shared cannot change; empty and nil stand for the present ones. Hooks
// without any function leave those of the kit; others take their place whole, for
// calls that begin then. What [Kit.Attach] has added stays, and what [Kit.Count]
// counts goes on. Everything else that c leaves out is left out, as for [New]: c is
// no patch.
//
// Update may be called at any time and from any goroutine, from a hook too. Of
// several at once one comes last, whole.
func (k *Kit) Update(c Config) error {
	d, err := k.update(c.clone())
	if err == nil {
		d.tell()
	}
	return err
}

func (k *Kit) update(c Config) (*draft, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if reflect.ValueOf(c.Hooks).IsZero() {
		c.Hooks = k.now.Load().config.Hooks
	}
	name := c.Name
	c.Name = k.name
	d, faults := k.draft(c)
	if name != "" && name != k.name {
		faults.Add("Name", name, "cannot change: the kit is %q", k.name)
	}
	if c.Shared != nil && !k.fleet.Is(k.sharing(*c.Shared)) {
		faults.Add("Shared", nil, "cannot change: make another kit")
	}
	if err := faults.Err("holdfast"); err != nil {
		return nil, err
	}
	k.publish(d)
	return d, nil
}
