package redisstore

import (
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"
)

// slot is the hash slot of a key by the specification of Redis Cluster: CRC16
// (XMODEM) of what stands between the first { and the first } after it, if
// anything does, else of the whole.
func slot(key string) int {
	if _, rest, ok := strings.Cut(key, "{"); ok {
		if tag, _, ok := strings.Cut(rest, "}"); ok && tag != "" {
			key = tag
		}
	}
	crc := 0
	for _, b := range []byte(key) {
		crc ^= int(b) << 8
		for range 8 {
			crc <<= 1
			if crc&0x10000 != 0 {
				crc ^= 0x11021
			}
		}
	}
	return crc % 16384
}

func TestASpaceHasOneSlot(t *testing.T) {
	require.Equal(t, 12739, slot("123456789")) // 0x31C3, the specification's own example
	slots := map[int]bool{}
	for _, prefix := range []string{"holdfast", "", "{}", "}", "a{b"} {
		for _, space := range []string{"catalog", "", "}", "{}", "{", "a}b{c", "GET /items/{id}"} {
			s := &Store{prefix: prefix}
			keys := append(s.keys(space), s.channel(space))
			for _, key := range keys {
				require.True(t, strings.HasPrefix(key, "{"), "the tag comes first: %s", key)
				require.Equal(t, slot(keys[0]), slot(key), key)
			}
			slots[slot(keys[0])] = true
		}
	}
	require.Len(t, slots, 35, "and other spaces other ones")
}

func TestClientsThatIgnoreDeadlinesAreRefused(t *testing.T) {
	_, err := New(nil, Options{})
	require.ErrorContains(t, err, "client is nil")
	for _, none := range []redis.UniversalClient{(*redis.Client)(nil), (*redis.ClusterClient)(nil), (*redis.Ring)(nil)} {
		_, err = New(none, Options{})
		require.ErrorContains(t, err, "client is nil")
	}
	for name, c := range map[string]redis.UniversalClient{
		"single":   redis.NewClient(&redis.Options{Addr: "127.0.0.1:1"}),
		"cluster":  redis.NewClusterClient(&redis.ClusterOptions{Addrs: []string{"127.0.0.1:1"}}),
		"sentinel": redis.NewFailoverClient(&redis.FailoverOptions{SentinelAddrs: []string{"127.0.0.1:1"}, MasterName: "m"}),
		"ring":     redis.NewRing(&redis.RingOptions{Addrs: map[string]string{"a": "127.0.0.1:1"}}),
	} {
		defer c.Close()
		_, err := New(c, Options{})
		require.ErrorContains(t, err, "ContextTimeoutEnabled", name)
	}
	for name, c := range map[string]redis.UniversalClient{
		"single":   redis.NewClient(&redis.Options{Addr: "127.0.0.1:1", ContextTimeoutEnabled: true}),
		"cluster":  redis.NewClusterClient(&redis.ClusterOptions{Addrs: []string{"127.0.0.1:1"}, ContextTimeoutEnabled: true}),
		"sentinel": redis.NewFailoverClient(&redis.FailoverOptions{SentinelAddrs: []string{"127.0.0.1:1"}, MasterName: "m", ContextTimeoutEnabled: true}),
	} {
		defer c.Close()
		_, err := New(c, Options{})
		require.NoError(t, err, name)
	}
}
