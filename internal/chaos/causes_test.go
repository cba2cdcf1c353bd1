package chaos

import (
	"context"
	"math/rand/v2"
	"sync"
	"time"
)

// harm begins all that makes calls fail: the weather at each proxy, servers that
// restart, a store that goes away, and an operator for each kit. It ends with ctx.
func (s *stage) harm(ctx context.Context, causes *sync.WaitGroup) {
	for n, p := range s.proxies() {
		draw := s.source(200 + n)
		causes.Go(func() {
			for wait(ctx, time.Duration(200+draw.IntN(1000))*time.Millisecond) == nil {
				w := weathers[draw.IntN(len(weathers))]
				p.weather.Store(&w)
			}
		})
	}
	for n, place := range s.places {
		draw := s.source(300 + n)
		causes.Go(func() {
			for wait(ctx, time.Duration(500+draw.IntN(2500))*time.Millisecond) == nil {
				if err := place.server.restart(draw.IntN(2) == 0, time.Duration(draw.IntN(300))*time.Millisecond); err != nil {
					s.ledger.fault("the server does not come back: %v", err)
					return
				}
			}
		})
	}
	causes.Go(func() { s.store.suffer(ctx, s.ledger, s.source(350)) })
	for n, m := range s.members {
		draw := s.source(400 + n)
		causes.Go(func() {
			for wait(ctx, time.Duration(20+draw.IntN(200))*time.Millisecond) == nil {
				m.operate(ctx, s.ledger, draw)
			}
		})
	}
}

// operate changes the policies, or gives a breaker an order.
func (m *member) operate(ctx context.Context, l *ledger, draw *rand.Rand) {
	breakers := l.visit(m.kit)
	if len(breakers) == 0 || draw.IntN(4) == 0 {
		if err := m.kit.Update(m.config(draw, l)); err != nil {
			l.fault("an update was refused: %v", err)
		}
		l.visit(m.kit)
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
	case 3, 4, 5:
		b.Enable()
	case 6:
		m.forceFleet(ctx, b.Name())
	default:
		b.Release()
	}
}

// forceFleet forces a circuit open for all members of a fleet, or ends what was
// forced so. While the store is away nothing comes of it, or so it seems.
func (m *member) forceFleet(ctx context.Context, name string) {
	f := m.kit.Fleet()
	switch {
	case f == nil:
	case m.forced == "":
		m.forced = name
		_ = f.ForceOpen(ctx, name, "chaos")
	case f.Release(ctx, m.forced) == nil:
		m.forced = ""
	}
}
