package holdfast_test

import (
	"context"
	"errors"
	"maps"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/breaker"
	"github.com/holdfast-go/holdfast/call"
	"github.com/holdfast-go/holdfast/retry"
)

// places are upstreams that answer by scripts, each hit by the next step, the last
// one for ever.
type places struct {
	kit  *holdfast.Kit
	list *holdfast.Upstreams

	mu    sync.Mutex
	steps map[string][]call.Result
	count map[string]int
	hits  []string
}

var (
	up       = call.Result{Class: call.OK}
	fault    = call.Result{Class: call.Unavailable, Err: errDown}
	unsent   = call.Result{Class: call.Unavailable, Err: errDown, NotSent: true}
	notFound = call.Result{Class: call.ClientFault, Err: errors.New("no such thing")}
)

// list makes a kit of one policy and a list of upstreams, "name" or "name|resource".
func list(t require.TestingT, p holdfast.Policy, names ...string) *places {
	return listOf(t, holdfast.Config{Default: p}, names...)
}

func listOf(t require.TestingT, c holdfast.Config, names ...string) *places {
	k, err := holdfast.New(c)
	require.NoError(t, err)
	var all []holdfast.Upstream
	for _, name := range names {
		name, resource, _ := strings.Cut(name, "|")
		all = append(all, holdfast.Upstream{Name: name, Resource: resource})
	}
	u, err := bound(t, k).Upstreams(all...)
	require.NoError(t, err)
	return &places{kit: k, list: u, steps: map[string][]call.Result{}, count: map[string]int{}}
}

// bound lets a kit read its table, and returns the binding.
func bound(t require.TestingT, k *holdfast.Kit) *holdfast.Binding {
	b, err := k.Bind(namesAsTheyAre)
	require.NoError(t, err)
	return b
}

// script sets what an upstream answers from now on.
func (p *places) script(name string, steps ...call.Result) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.steps[name], p.count[name] = steps, 0
}

// answer is a hit.
func (p *places) answer(info call.Info) call.Result {
	name := info.Target
	if info.Resource != "" {
		name += "|" + info.Resource
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	steps, n := p.steps[name], p.count[name]
	p.count[name]++
	p.hits = append(p.hits, name)
	if len(steps) == 0 {
		return up
	}
	return steps[min(n, len(steps)-1)]
}

// took returns the hits since it was last asked.
func (p *places) took() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	hits := strings.Join(p.hits, " ")
	p.hits = nil
	return hits
}

type asCaller struct {
	safety call.Safety
	keyed  bool
	takes  time.Duration // an attempt
}

// call makes a call, a read unless told otherwise.
func (p *places) call(ctx context.Context, as ...asCaller) (*holdfast.Call, error) {
	who := asCaller{safety: call.ReadOnly}
	if len(as) > 0 {
		who = as[0]
	}
	b, err := p.kit.Bind(namesAsTheyAre)
	if err != nil {
		return nil, err
	}
	c := new(holdfast.Call)
	ctx, err = c.Begin(ctx, b.Table().Default(), call.Info{Method: "m", Safety: who.safety}, holdfast.Terms{Keyed: who.keyed, Upstreams: p.list})
	if err != nil {
		return c, err
	}
	_, err = c.Run(ctx, func(ctx context.Context, _ int) {
		if who.takes > 0 {
			select {
			case <-time.After(who.takes):
			case <-ctx.Done():
				c.End(call.Result{Class: call.TimedOut, Err: ctx.Err()})
				return
			}
		}
		c.End(p.answer(c.Info()))
	})
	return c, err
}

func (p *places) breaker(t require.TestingT, name string) *breaker.Breaker {
	b := maps.Collect(p.kit.Breakers())[name]
	require.NotNil(t, b, "no breaker %q", name)
	return b
}

// steady is a policy whose breakers do not open by themselves for small numbers.
func steady() holdfast.Policy {
	p := quick()
	p.Breaker.Consecutive, p.Breaker.FailureRate, p.Breaker.MinCalls = 100, 0, 0
	return p
}

// fragile is one whose breakers open at the first failure.
func fragile() holdfast.Policy {
	p := quick()
	p.Retry = retry.Off()
	p.Breaker = &breaker.Config{Consecutive: 1, Cooldown: 10 * time.Second, Jitter: breaker.NoJitter, ProbeSuccesses: 1}
	return p
}

func inBubble(t *testing.T, f func(t *testing.T)) { synctest.Test(t, f) }

// The names of a list are checked, and an explanation shows it.
func TestUpstreamsAreCheckedAndExplained(t *testing.T) {
	k := newKit(t, quick())
	_, err := bound(t, k).Upstreams()
	require.EqualError(t, err, "holdfast: Upstreams: there is none")
	_, err = bound(t, k).Upstreams(holdfast.Upstream{Name: "A"}, holdfast.Upstream{}, holdfast.Upstream{Name: "A"})
	require.ErrorContains(t, err, "Upstreams[1].Name: is missing")
	require.ErrorContains(t, err, "Upstreams[2] = A: is the same as Upstreams[0]")

	for range 2 { // the same list twice is one
		_, err = bound(t, k).Upstreams(holdfast.Upstream{Name: "A", Resource: "m1"}, holdfast.Upstream{Name: "B"})
		require.NoError(t, err)
	}
	require.Equal(t, []string{"A|m1, B"}, k.Policies()[0].Upstreams)
	require.Contains(t, k.Policies()[0].String(), "\n  failover: A|m1, B; ")
}
