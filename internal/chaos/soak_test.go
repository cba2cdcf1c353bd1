package chaos

import (
	"context"
	"flag"
	"fmt"
	"maps"
	"math/rand/v2"
	"net"
	"net/http"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/breaker"
	"github.com/holdfast-go/holdfast/bulkhead"
	"github.com/holdfast-go/holdfast/call"
	"github.com/holdfast-go/holdfast/grpcmw"
	"github.com/holdfast-go/holdfast/httpmw"
	"github.com/holdfast-go/holdfast/retry"
	"github.com/holdfast-go/holdfast/timeout"
)

var (
	soakFor  = flag.Duration("soak", 8*time.Second, "how long the soak test runs")
	soakSeed = flag.Uint64("seed", 0, "what the soak test draws from; 0 draws one")
)

// policy draws one. It is for a short life: all times are small.
func policy(draw *rand.Rand) holdfast.Policy {
	ms := func(some ...int) time.Duration { return time.Duration(pick(draw, some...)) * time.Millisecond }
	p := holdfast.Policy{
		Retry: &retry.Policy{
			MaxAttempts: 1 + draw.IntN(4),
			Backoff:     retry.Backoff{Base: ms(1, 5, 20), Cap: ms(50, 100)},
			Budget:      pick(draw, retry.Budget{}, retry.NoBudget()),
			Hedge:       pick(draw, retry.Hedge{}, retry.Hedge{}, retry.Hedge{Delay: ms(1, 20)}),
		},
		Breaker: &breaker.Config{
			Window: pick(draw, breaker.Window{Calls: 20}, breaker.Window{Span: 2 * time.Second}), MinCalls: 5, FailureRate: pick(draw, 0.5, 0.8),
			Cooldown: ms(50, 200), MaxCooldown: 500 * time.Millisecond, Probes: 1 + draw.IntN(3), ProbeSuccesses: 1 + draw.IntN(3), ProbeTimeout: ms(100, 400),
			Stall: breaker.Stall{After: ms(200, 400), Calls: 1 + draw.IntN(8)},
			Scope: pick(draw, breaker.PerTarget, breaker.PerMethod, breaker.TwoLevel),
		},
		Timeout: &timeout.Limits{
			Total: ms(1000, 3000), Attempt: ms(200, 500), FirstMessage: ms(0, 0, 300), Idle: ms(0, 100, 500), Floor: ms(0, 2),
		},
		Bulkhead: &bulkhead.Config{Limit: 2 + draw.IntN(20), Queue: draw.IntN(10), MaxWait: ms(0, 20)},
	}
	if p.Bulkhead.Queue == 0 {
		p.Bulkhead.MaxWait = 0
	}
	if p.Retry.MaxAttempts == 1 {
		p.Retry.Hedge = retry.Hedge{}
	}
	switch draw.IntN(12) {
	case 0:
		p.Retry = retry.Off()
	case 1:
		p.Breaker = breaker.Off()
	case 2:
		p.Bulkhead = bulkhead.Off()
	}
	return p
}

// config draws a table, with an entry that says what each RPC does.
func config(draw *rand.Rand, l *ledger, rpc bool) holdfast.Config {
	c := holdfast.Config{Default: policy(draw), Hooks: l.hooks()}
	if rpc {
		c.Methods = map[string]holdfast.Policy{
			service + "Read":   {Safety: call.ReadOnly},
			service + "Feed":   {Safety: call.ReadOnly},
			service + "Put":    {Safety: call.Idempotent},
			service + "Upload": {Safety: call.Idempotent},
			service + "Chat":   {Safety: call.ReadOnly},
		}
		own := policy(draw)
		own.Safety = call.ReadOnly
		c.Methods[service+"Read"] = own
	}
	return c
}

// recovered is what each kit is given in the end: with it nothing may stay shut.
func recovered(c holdfast.Config) holdfast.Config {
	c.Default = holdfast.Policy{
		Breaker: &breaker.Config{Cooldown: 100 * time.Millisecond, MaxCooldown: 200 * time.Millisecond, ProbeTimeout: time.Second},
		Timeout: &timeout.Limits{Total: 3 * time.Second, Attempt: time.Second},
	}
	c.Methods = maps.Clone(c.Methods)
	if own, ok := c.Methods[service+"Read"]; ok {
		c.Methods[service+"Read"] = holdfast.Policy{Safety: own.Safety}
	}
	return c
}

// TestSoak is in real time, with real sockets: what it looks for is what virtual
// time and an orderly wire do not show.
func TestSoak(t *testing.T) {
	seed := *soakSeed
	if seed == 0 {
		seed = rand.Uint64()
	}
	t.Logf("go test ./internal/chaos -run Soak -soak %v -seed %d", *soakFor, seed)
	before := runtime.NumGoroutine()
	l := newLedger()
	soak(t, l, seed, *soakFor)

	require.Empty(t, l.faults)
	for id, n := range l.done {
		if strings.HasPrefix(id, once) && n > 1 {
			t.Errorf("%s was carried out %d times", id, n)
		}
	}
	require.Eventually(t, func() bool { return l.calls.even() && l.attempts.even() && l.bodies.even() && len(l.held()) == 0 },
		5*time.Second, 20*time.Millisecond, "calls %s; attempts %s; bodies %s; %v", &l.calls, &l.attempts, &l.bodies, l.held())
	if !settles(func() bool { return runtime.NumGoroutine() <= before+1 }) { // the runtime may have started one of its own
		stacks := make([]byte, 1<<20)
		t.Errorf("%d goroutines, %d before:\n%s", runtime.NumGoroutine(), before, stacks[:runtime.Stack(stacks, true)])
	}
	for _, outcome := range slices.Sorted(maps.Keys(l.outcomes)) {
		t.Logf("%7d  %s", l.outcomes[outcome], outcome)
	}
}

// settles waits for what other goroutines are about to do.
func settles(done func() bool) bool {
	for deadline := time.Now().Add(5 * time.Second); time.Now().Before(deadline); time.Sleep(20 * time.Millisecond) {
		if done() {
			return true
		}
	}
	return done()
}

func soak(t *testing.T, l *ledger, seed uint64, length time.Duration) {
	source := func(n uint64) *rand.Rand { return rand.New(rand.NewPCG(seed, n)) }
	servers := []*server{startServer(t, httpServer(l)), startServer(t, grpcServer(l))}
	proxies := []*proxy{startProxy(t, servers[0].address, seed), startProxy(t, servers[1].address, seed+1)}

	var kits []*holdfast.Kit
	for n, rpc := range []bool{false, true} {
		k, err := holdfast.New(config(source(uint64(10+n)), l, rpc))
		require.NoError(t, err)
		kits = append(kits, k)
	}
	var webs []*http.Client
	var transports []*http.Transport
	for _, h2 := range []bool{false, true} {
		p := new(http.Protocols)
		p.SetHTTP1(!h2)
		p.SetUnencryptedHTTP2(h2)
		transport := &http.Transport{Protocols: p, DialContext: new(net.Dialer).DialContext}
		transports = append(transports, transport)
		webs = append(webs, &http.Client{Transport: httpmw.NewTransport(watched{transport, l}, kits[0])})
	}
	var conns []*grpc.ClientConn
	for range 2 {
		cc, err := grpc.NewClient(proxies[1].address(), append(grpcmw.DialOptions(kits[1]), grpc.WithTransportCredentials(insecure.NewCredentials()))...)
		require.NoError(t, err)
		conns = append(conns, cc)
	}
	newClient := func(name string, n uint64) *client {
		return &client{name: name, draw: source(n), ledger: l, http: webs, url: "http://" + proxies[0].address() + "/", grpc: conns}
	}

	ctx, stop := context.WithTimeout(t.Context(), length)
	defer stop()
	var callers, causes sync.WaitGroup
	for n := range 12 {
		c := newClient(fmt.Sprint(n), uint64(100+n))
		callers.Go(func() {
			for ctx.Err() == nil {
				if c.draw.IntN(2) == 0 {
					c.httpCall()
				} else {
					c.grpcCall()
				}
				_ = wait(ctx, time.Duration(c.draw.IntN(5))*time.Millisecond)
			}
		})
	}
	for n := range 2 {
		draw := source(uint64(200 + n))
		causes.Go(func() { // the weather
			for wait(ctx, time.Duration(200+draw.IntN(1000))*time.Millisecond) == nil {
				w := weathers[draw.IntN(len(weathers))]
				proxies[n].weather.Store(&w)
			}
		})
		causes.Go(func() { // restarts
			draw := source(uint64(300 + n))
			for wait(ctx, time.Duration(500+draw.IntN(2500))*time.Millisecond) == nil {
				if err := servers[n].restart(draw.IntN(2) == 0, time.Duration(draw.IntN(300))*time.Millisecond); err != nil {
					l.fault("the server does not come back: %v", err)
					return
				}
			}
		})
		causes.Go(func() { // an operator
			draw := source(uint64(400 + n))
			for wait(ctx, time.Duration(20+draw.IntN(200))*time.Millisecond) == nil {
				operate(l, kits[n], draw, n == 1)
			}
		})
	}
	callers.Wait()
	causes.Wait()

	// Fine weather, and nothing forced: each kit serves again.
	for n, k := range kits {
		proxies[n].weather.Store(&calm)
		require.NoError(t, k.Update(recovered(config(source(uint64(500+n)), l, n == 1))))
		for _, b := range l.visit(k) {
			b.Release()
			b.Enable()
		}
	}
	c := newClient("last", 600)
	for _, web := range webs {
		row(t, "HTTP", func(n int) error {
			o := order{id: fmt.Sprint("row-", n), code: 200, pieces: 2}
			req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, c.url, nil)
			if err != nil {
				return err
			}
			req.Header.Set("X-Order", o.String())
			resp, err := web.Do(req)
			if err != nil {
				return err
			}
			return resp.Body.Close()
		})
	}
	for _, cc := range conns {
		row(t, "gRPC", func(n int) error {
			_, err := c.stream(t.Context(), cc, "Feed", order{id: fmt.Sprint("row-", n)}, nil)
			if err == errLeft {
				err = nil
			}
			return err
		})
	}

	for _, transport := range transports {
		transport.CloseIdleConnections()
	}
	for _, cc := range conns {
		require.NoError(t, cc.Close())
	}
	require.True(t, settles(func() bool { return proxies[0].connections()+proxies[1].connections() == 0 }),
		"connections are left: %d of HTTP's, %d of gRPC's", proxies[0].connections(), proxies[1].connections())
	for _, p := range proxies {
		p.close()
	}
	for _, s := range servers {
		s.stop(false)
	}
	for _, k := range kits {
		l.visit(k)
	}
}

// row asks until 20 calls in a row succeed.
func row(t *testing.T, wire string, do func(n int) error) {
	t.Helper()
	var err error
	good := 0
	for n, deadline := 0, time.Now().Add(20*time.Second); good < 20 && time.Now().Before(deadline); n++ {
		if good++; do(n) != nil {
			err, good = do(n), 0
			time.Sleep(20 * time.Millisecond)
		}
	}
	require.Equal(t, 20, good, "%s does not recover: %v", wire, err)
}

// operate changes the policies, or gives a breaker an order.
func operate(l *ledger, k *holdfast.Kit, draw *rand.Rand, rpc bool) {
	breakers := l.visit(k)
	if len(breakers) == 0 || draw.IntN(4) == 0 {
		if err := k.Update(config(draw, l, rpc)); err != nil {
			l.fault("an update was refused: %v", err)
		}
		l.visit(k)
		return
	}
	b := breakers[draw.IntN(len(breakers))]
	switch draw.IntN(16) {
	case 0:
		b.ForceOpen("chaos")
	case 1:
		b.Disable()
	case 2:
		b.Reset()
	case 3, 4, 5, 6:
		b.Enable()
	default:
		b.Release()
	}
}
