package agoratest

import (
	"cmp"
	"testing"
	"time"

	"github.com/agora-relay/agora/internal/servers"
)

// ProcessOptions say what cluster of processes a test needs. The zero value is
// three edges of a binary built for it, on three NATS nodes and one redis-server.
type ProcessOptions struct {
	Binary   string          // of the command; built when empty, see BuildAgora
	Sentinel bool            // presence is three redis-servers behind Sentinel
	Sharded  bool            // presence is a Redis Cluster of three
	Disk     int             // bytes of the disk that each NATS node has of its own; no such disk
	Lease    time.Duration   // of an edge; 3s
	Leases   []time.Duration // of edge k; Lease where there is none
	Flags    []string        // more of each edge's command line
}

// Processes is a cluster whose parts are processes of their own, on loopback ports: what is
// killed there dies as in production. Its methods are for the test's goroutine, but for URLs.
type Processes struct {
	NATS     *servers.NATSNodes
	Redis    *servers.RedisServer // nil with Sentinel or Sharded
	Sentinel *servers.Sentinel    // nil without
	Sharded  *servers.RedisNodes  // nil without
	Edges    []*EdgeProcess

	t    testing.TB
	opts ProcessOptions
}

// StartProcesses starts a cluster and returns when every edge is ready. The test's end kills
// all of it, even that of a test that dies; when the test has failed, it shows what each edge said last.
func StartProcesses(t testing.TB, o ProcessOptions) *Processes {
	t.Helper()
	o.Lease = cmp.Or(o.Lease, 3*time.Second)
	// Short, so that a test need not wait, and long enough for every outage that it makes.
	o.Flags = append([]string{"--edge.lease", o.Lease.String(), "--session.grace", "30s", "--session.heartbeat", "1s",
		"--session.timeout", "6s", "--nats.shards", "2", "--mailbox.shard-bytes", "64MiB", "--spaces.delta-threshold", "1KiB"}, o.Flags...)
	c := &Processes{t: t}
	c.NATS = servers.StartNATSNodes(t, o.Disk)
	switch {
	case o.Sentinel:
		c.Sentinel = servers.StartSentinel(t)
	case o.Sharded:
		c.Sharded = servers.StartRedisNodes(t)
	default:
		c.Redis = servers.Redis(t)
	}
	if o.Binary == "" {
		o.Binary = BuildAgora(t, "") // while the servers find each other
	}
	c.opts = o
	c.NATS.Ready()
	dir := t.TempDir()
	t.Cleanup(func() { c.stop(t) })
	for k := range 3 {
		e := c.newEdge(dir, k)
		c.Edges = append(c.Edges, e)
		e.Start()
	}
	for _, e := range c.Edges {
		e.Ready()
	}
	return c
}

// Under has the cluster's calls fail another test from now on, such as a subtest of the one that started it.
func (c *Processes) Under(t testing.TB) {
	c.t = t
	c.NATS.Under(t)
	for _, e := range c.Edges {
		e.t = t
	}
}

// URLs returns where agents connect, at every edge, whether it lives or not: agents have no better list.
func (c *Processes) URLs() []string {
	var urls []string
	for _, e := range c.Edges {
		urls = append(urls, e.URL())
	}
	return urls
}

// Heal takes away whatever was done to the cluster, starts what has ended, and waits until all of it is ready.
func (c *Processes) Heal() {
	c.t.Helper()
	c.NATS.Heal()
	if c.Redis != nil {
		c.Redis.Start()
	}
	for _, e := range c.Edges {
		e.mend()
	}
	for _, e := range c.Edges {
		e.Ready()
	}
}

func (c *Processes) stop(t testing.TB) {
	for _, e := range c.Edges {
		if t.Failed() {
			t.Logf("%s said last:\n%s", e.proc.Argv[3], e.proc.Gist(8))
		}
		e.Kill()
	}
}
