package holdfast

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/holdfast-go/holdfast/internal/check"
	"github.com/holdfast-go/holdfast/internal/instance"
	"github.com/holdfast-go/holdfast/internal/mono"
)

// Upstream is for the kit's own adapters: one of several places that can answer the same
// calls.
type Upstream struct {
	// Name is the target, which the breaker is named for.
	Name string

	// Resource is the part of the target that is called, if the list names one: a
	// model behind a channel, say. Empty is the call's own.
	Resource string

	// Instances keeps apart the results of the target's instances. Nil is one
	// instance.
	Instances *instance.Set
}

// String returns "name", or "name|resource", as breakers are named.
func (u Upstream) String() string {
	if u.Resource == "" {
		return u.Name
	}
	return under(u.Name, u.Resource)
}

// Upstreams is for the kit's own adapters: a list of upstreams in order of preference,
// with what is kept about it between calls. [Binding.Upstreams] makes it; calls are begun
// with it.
type Upstreams struct {
	list []Upstream
	try  forcedTry
}

// Upstreams makes a list. It returns an error that names every upstream without a
// name and every one that is in the list twice.
func (b *Binding) Upstreams(list ...Upstream) (*Upstreams, error) {
	var faults check.Faults
	if len(list) == 0 {
		faults.Add("Upstreams", nil, "there is none")
	}
	seen := map[string]int{}
	for i, u := range list {
		field := upstreamField(i)
		if u.Name == "" {
			faults.Add(field+".Name", nil, "is missing")
		}
		if first, twice := seen[u.String()]; twice {
			faults.Add(field, u.String(), "is the same as %s", upstreamField(first))
		} else {
			seen[u.String()] = i
		}
	}
	if err := faults.Err("holdfast"); err != nil {
		return nil, err
	}
	u := &Upstreams{list: slices.Clone(list)}
	k, protocol := b.kit, b.protocol.Name
	k.mu.Lock()
	defer k.mu.Unlock()
	if text := u.names(); len(k.lists[protocol]) < maxLists && !slices.Contains(k.lists[protocol], text) {
		k.lists[protocol] = append(k.lists[protocol], text)
	}
	return u, nil
}

func upstreamField(i int) string { return fmt.Sprintf("Upstreams[%d]", i) }

// maxLists bounds what Explain tells of lists.
const maxLists = 20

// listsOf returns the lists of a protocol.
func (k *Kit) listsOf(protocol string) []string {
	k.mu.Lock()
	defer k.mu.Unlock()
	return slices.Clone(k.lists[protocol])
}

// names returns the names in order.
func (u *Upstreams) names() string {
	names := make([]string, len(u.list))
	for i := range u.list {
		names[i] = u.list[i].String()
	}
	return strings.Join(names, ", ")
}

// forcedTry is the rule for when every upstream is closed off: one attempt is made
// all the same, at most one at a time and one a second. What is answered, or has had
// its time as a probe, is no try any more, however long it goes on as a stream.
type forcedTry struct {
	mu    sync.Mutex
	count uint64       // tries so far
	over  bool         // the last of them is
	until mono.Instant // or will be at that time
	last  mono.Instant // when it began
}

// forcedPause is the least time between two forced tries.
const forcedPause = time.Second

// begin returns which forced try may be made now, 0 if none may. end ends it.
func (f *forcedTry) begin(now mono.Instant) (try uint64) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.count > 0 && (!f.over && now.Before(f.until) || now.Sub(f.last) < forcedPause) {
		return 0
	}
	f.count++
	f.over, f.until, f.last = false, mono.Last(), now
	return f.count
}

// lasts says when a try is over at the latest.
func (f *forcedTry) lasts(try uint64, until mono.Instant) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if try == f.count {
		f.until = until
	}
}

func (f *forcedTry) end(try uint64) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if try == f.count {
		f.over = true
	}
}
