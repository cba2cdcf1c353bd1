package breaker_test

import (
	"context"
	"net"
	"testing"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-go/holdfast/breaker"
	"github.com/holdfast-go/holdfast/breaker/redisstore"
)

// TestS3_OutagesOnRedis is TwoHundredOutages over the protocol and the scripts,
// in virtual time still.
func TestS3_OutagesOnRedis(t *testing.T) {
	outages(t, 6, 6, func(t *testing.T) breaker.Store {
		m := miniredis.NewMiniRedis()
		m.ClockTTL(true)
		c := redis.NewClient(&redis.Options{
			Addr:                  "127.0.0.1:1", // never dialled; a name would be looked up
			Dialer:                func(context.Context, string, string) (net.Conn, error) { return m.Dial() },
			ContextTimeoutEnabled: true,
		})
		t.Cleanup(func() {
			c.Close()
			m.Close()
		})
		s, err := redisstore.New(c, redisstore.Options{})
		require.NoError(t, err)
		return s
	})
}
