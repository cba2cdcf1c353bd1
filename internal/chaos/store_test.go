package chaos

import (
	"context"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-go/holdfast/breaker"
	"github.com/holdfast-go/holdfast/breaker/redisstore"
)

// store is what the members of a fleet share their state on, behind a proxy.
type store struct {
	redis  *miniredis.Miniredis
	proxy  *proxy
	client *redis.Client
	shared breaker.Store
}

type silent struct{}

func (silent) Printf(context.Context, string, ...any) {}

func startStore(t *testing.T, seed uint64) *store {
	t.Helper()
	redis.SetLogger(silent{}) // cut connections are meant
	s := &store{redis: miniredis.NewMiniRedis()}
	s.redis.ClockTTL(true)
	require.NoError(t, s.redis.StartAddr("127.0.0.1:0"))
	s.proxy = startProxy(t, s.redis.Addr(), seed)
	s.client = redis.NewClient(&redis.Options{Addr: s.proxy.address(), ContextTimeoutEnabled: true, MaxRetries: -1, DialerRetries: 1})
	var err error
	s.shared, err = redisstore.New(s.client, redisstore.Options{})
	require.NoError(t, err)
	return s
}

// sharing is the part of one worker.
func (s *store) sharing(l *ledger, worker string) *breaker.Sharing {
	return &breaker.Sharing{
		Store: s.shared, Space: "chaos", Worker: worker, Refresh: 300 * time.Millisecond, Timeout: 50 * time.Millisecond, Push: true,
		Health: func(err error) {
			if err != nil {
				l.happens("times that the store went away")
			} else {
				l.happens("times that the store came back")
			}
		},
	}
}

// suffer lets the store go away and come back, forget what it had, or fail, until
// ctx ends. It is there again at the end.
func (s *store) suffer(ctx context.Context, l *ledger, draw *rand.Rand) {
	for wait(ctx, time.Duration(200+draw.IntN(1500))*time.Millisecond) == nil {
		pause := time.Duration(draw.IntN(600)) * time.Millisecond
		switch draw.IntN(4) {
		case 0, 1:
			s.redis.Close()
			_ = wait(ctx, pause)
			if err := s.redis.Restart(); err != nil {
				l.fault("the store does not come back: %v", err)
				return
			}
		case 2:
			s.redis.FlushAll()
		default:
			s.redis.SetError("LOADING the data set is being read")
			_ = wait(ctx, pause)
			s.redis.SetError("")
		}
	}
}

func (s *store) close(t *testing.T) {
	t.Helper()
	require.NoError(t, s.client.Close())
	s.proxy.close()
	s.redis.Close()
}
