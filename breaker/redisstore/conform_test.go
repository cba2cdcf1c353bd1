package redisstore_test

import (
	"testing"
	"testing/synctest"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-go/holdfast/breaker"
	"github.com/holdfast-go/holdfast/breaker/breakertest"
	"github.com/holdfast-go/holdfast/breaker/redisstore"
)

func store(t testing.TB, c redis.UniversalClient) *redisstore.Store {
	t.Helper()
	s, err := redisstore.New(c, redisstore.Options{})
	require.NoError(t, err)
	return s
}

func TestConformsEmbedded(t *testing.T) {
	breakertest.Run(t, breakertest.Harness{
		New: func(t *testing.T) breaker.Store {
			_, c := embedded(t)
			return store(t, c)
		},
		Around: synctest.Test,
	})
}

func TestConformsOnAServer(t *testing.T) {
	addr := server(t)
	breakertest.Run(t, breakertest.Harness{New: func(t *testing.T) breaker.Store {
		c := client(t, addr)
		require.NoError(t, c.FlushAll(t.Context()).Err())
		return store(t, c)
	}})
}

func prefixed(t *testing.T, c redis.UniversalClient, prefix string) *redisstore.Store {
	t.Helper()
	s, err := redisstore.New(c, redisstore.Options{Prefix: prefix})
	require.NoError(t, err)
	return s
}
