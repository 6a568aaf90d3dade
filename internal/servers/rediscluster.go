package servers

import (
	"fmt"
	"net"
	"net/url"
	"strconv"
	"strings"
	"testing"

	"github.com/agora-relay/agora/internal/await"
)

// RedisNodes is a Redis Cluster of three masters without replicas. Its methods are for the test's goroutine.
type RedisNodes struct{ nodes []*RedisServer }

// StartRedisNodes starts the cluster and returns when it serves every slot. The test's end stops it.
func StartRedisNodes(t testing.TB) *RedisNodes {
	t.Helper()
	c := &RedisNodes{}
	var buses []int
	for k := range 3 {
		bus, err := steadyPort()
		if err != nil {
			t.Fatal(err)
		}
		s := redisWith(t, "--cluster-enabled", "yes", "--cluster-port", strconv.Itoa(bus),
			"--cluster-config-file", "nodes.conf", "--cluster-node-timeout", "1000")
		s.ask(fmt.Sprintf("CLUSTER ADDSLOTSRANGE %d %d", k*16384/3, (k+1)*16384/3-1))
		s.ask(fmt.Sprintf("CLUSTER SET-CONFIG-EPOCH %d", k+1))
		c.nodes, buses = append(c.nodes, s), append(buses, bus)
	}
	for k, s := range c.nodes[1:] {
		_, port, err := net.SplitHostPort(s.Addr())
		if err != nil {
			t.Fatal(err)
		}
		c.nodes[0].ask(fmt.Sprintf("CLUSTER MEET 127.0.0.1 %s %d", port, buses[k+1]))
	}
	if !await.Within(await.Long, c.serves) {
		t.Fatalf("the Redis Cluster does not serve: %s", c.nodes[0].ask("CLUSTER INFO"))
	}
	return c
}

// serves reports whether every node takes every slot for served.
func (c *RedisNodes) serves() bool {
	for _, s := range c.nodes {
		info := s.ask("CLUSTER INFO")
		if !strings.Contains(info, "cluster_state:ok") || !strings.Contains(info, "cluster_known_nodes:3") {
			return false
		}
	}
	return true
}

// URL returns the address of the cluster, as an edge takes it.
func (c *RedisNodes) URL() string {
	q := url.Values{"addr": {c.nodes[1].Addr(), c.nodes[2].Addr()}}
	return "redis-cluster://" + c.nodes[0].Addr() + "?" + q.Encode()
}

// Stop kills node k, and all that it knew with it.
func (c *RedisNodes) Stop(k int) { c.nodes[k].Stop() }

// Start starts node k again, empty, with the slots that it had, and returns when the cluster serves.
func (c *RedisNodes) Start(t testing.TB, k int) {
	t.Helper()
	c.nodes[k].Start()
	if !await.Within(await.Long, c.serves) {
		t.Fatalf("the Redis Cluster does not serve again: %s", c.nodes[k].ask("CLUSTER INFO"))
	}
}
