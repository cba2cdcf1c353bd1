package redisstore_test

import (
	"fmt"
	"net"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-go/holdfast/breaker"
	"github.com/holdfast-go/holdfast/breaker/breakertest"
)

// startCluster makes a cluster of three nodes of a third of the slots each.
func startCluster(t *testing.T) *redis.ClusterClient {
	t.Helper()
	const nodes = 3
	var addrs []string
	for i := range nodes {
		addr := startServer(t, "--cluster-enabled", "yes", "--cluster-config-file", "nodes.conf", "--cluster-node-timeout", "2000",
			"--cluster-port", strconv.Itoa(freePort(t)))
		addrs = append(addrs, addr)
		c := client(t, addr)
		first, last := 16384*i/nodes, 16384*(i+1)/nodes-1
		require.NoError(t, c.Do(t.Context(), "CLUSTER", "ADDSLOTSRANGE", first, last).Err())
		require.NoError(t, c.Do(t.Context(), "CLUSTER", "SET-CONFIG-EPOCH", i+1).Err())
	}
	for _, addr := range addrs[1:] {
		host, port, _ := net.SplitHostPort(addr)
		bus, err := client(t, addr).ConfigGet(t.Context(), "cluster-port").Result()
		require.NoError(t, err)
		require.NoError(t, client(t, addrs[0]).Do(t.Context(), "CLUSTER", "MEET", host, port, bus["cluster-port"]).Err())
	}
	for _, addr := range addrs {
		soon(t, "the cluster is whole", func() bool {
			info, err := client(t, addr).ClusterInfo(t.Context()).Result()
			return err == nil && strings.Contains(info, "cluster_state:ok") && strings.Contains(info, "cluster_known_nodes:3")
		})
	}
	cc := redis.NewClusterClient(&redis.ClusterOptions{Addrs: addrs, ContextTimeoutEnabled: true})
	t.Cleanup(func() { cc.Close() })
	return cc
}

func freePort(t *testing.T) int {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer l.Close()
	return l.Addr().(*net.TCPAddr).Port
}

func TestConformsOnACluster(t *testing.T) {
	if !installed(t) {
		t.Skip("a cluster is made of redis-server, which is not installed")
	}
	cc := startCluster(t)
	n := 0
	breakertest.Run(t, breakertest.Harness{New: func(t *testing.T) breaker.Store {
		n++ // no flush of three nodes: a space of its own for each test, by the prefix
		return prefixed(t, cc, fmt.Sprint("test ", n))
	}})

	// Spaces are spread over the nodes.
	owners := map[string]bool{}
	s := store(t, cc)
	for i := range 30 {
		space := fmt.Sprint("space ", i)
		_, err := s.Open(t.Context(), space, "GET /items/{id}", opening("a"))
		require.NoError(t, err)
		node, err := cc.MasterForKey(t.Context(), "{holdfast:"+space+"}:v1:records")
		require.NoError(t, err)
		owners[node.Options().Addr] = true
	}
	require.Len(t, owners, 3)

	f, err := breaker.Join(breaker.Sharing{Store: s, Refresh: 200 * time.Millisecond})
	require.NoError(t, err)
	require.True(t, f.Stats().Answering)
}
