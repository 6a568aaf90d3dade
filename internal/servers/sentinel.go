package servers

import (
	"fmt"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/agora-relay/agora/internal/await"
)

// Sentinel is three redis-servers, of which one is the master, and three
// sentinels that make another the master when it dies. Its methods are for the test's goroutine.
type Sentinel struct {
	t         testing.TB
	servers   []*RedisServer
	sentinels []*sentinel
}

// sentinel is one redis-sentinel process.
type sentinel struct {
	proc Process
	addr string
}

// masterName is the name under which the sentinels know the group.
const masterName = "main"

// eager has a server give a new replica its data at once.
var eager = []string{"--repl-diskless-sync-delay", "0"}

// StartSentinel starts the group and returns when a dead master would be replaced. The test's end stops it.
func StartSentinel(t testing.TB) *Sentinel {
	t.Helper()
	s := &Sentinel{t: t, servers: []*RedisServer{redisWith(t, eager...)}}
	host, port, err := net.SplitHostPort(s.servers[0].Addr())
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		s.servers = append(s.servers, redisWith(t, append(slices.Clone(eager), "--replicaof", host+" "+port)...))
	}
	dir := t.TempDir()
	t.Cleanup(s.kill)
	for k := range 3 {
		s.sentinels = append(s.sentinels, s.start(dir, k))
	}
	if !await.Within(await.Long, s.ready) {
		t.Fatalf("the sentinels don't agree:\n%s", s.sentinels[0].proc.Tail(10))
	}
	return s
}

func (s *Sentinel) start(dir string, k int) *sentinel {
	s.t.Helper()
	addr, err := Addr()
	if err != nil {
		s.t.Fatal(err)
	}
	_, port, err := net.SplitHostPort(addr)
	if err != nil {
		s.t.Fatal(err)
	}
	file := filepath.Join(dir, fmt.Sprintf("sentinel-%d.conf", k))
	master := strings.ReplaceAll(s.servers[0].Addr(), ":", " ")
	conf := fmt.Sprintf("port %s\nbind 127.0.0.1\ndir %q\nsentinel monitor %s %s 2\n"+
		"sentinel down-after-milliseconds %[3]s 1000\nsentinel failover-timeout %[3]s 5000\n", port, dir, masterName, master)
	if err := os.WriteFile(file, []byte(conf), 0o600); err != nil { // it keeps what it learns there
		s.t.Fatal(err)
	}
	x := &sentinel{addr: addr}
	x.proc.Argv, x.proc.Log = []string{s.servers[0].path, file, "--sentinel"}, file+".log"
	if err := x.proc.Start(); err != nil {
		s.t.Fatalf("start a sentinel: %v", err)
	}
	return x
}

// ready reports whether every sentinel knows the others and both replicas, and those have what the master has.
func (s *Sentinel) ready() bool {
	for _, r := range s.servers[1:] {
		if !strings.Contains(r.ask("ROLE"), "connected") {
			return false
		}
	}
	for _, x := range s.sentinels {
		info := strings.Fields(ask(x.addr, "SENTINEL MASTER "+masterName))
		if value(info, "num-slaves") != "2" || value(info, "num-other-sentinels") != "2" ||
			!strings.Contains(ask(x.addr, "SENTINEL CKQUORUM "+masterName), "+OK") {
			return false
		}
	}
	return true
}

// value returns what follows a name in an answer of names and values, each after a line with its length.
func value(fields []string, name string) string {
	for i, f := range fields {
		if f == name && i+2 < len(fields) {
			return fields[i+2]
		}
	}
	return ""
}

// URL returns the address of the group, as an edge takes it.
func (s *Sentinel) URL() string {
	q := url.Values{"master_name": {masterName}}
	for _, x := range s.sentinels[1:] {
		q.Add("addr", x.addr)
	}
	return "redis-sentinel://" + s.sentinels[0].addr + "?" + q.Encode()
}

// Master returns the server that the sentinels take for the master.
func (s *Sentinel) Master() *RedisServer {
	s.t.Helper()
	fields := strings.Fields(ask(s.sentinels[0].addr, "SENTINEL GET-MASTER-ADDR-BY-NAME "+masterName))
	for _, r := range s.servers {
		if len(fields) == 5 && r.Addr() == net.JoinHostPort(fields[2], fields[4]) {
			return r
		}
	}
	s.t.Fatalf("the sentinels know no master: %q", fields)
	return nil
}

// Detach has both replicas hear nothing more from the master: what is written from now on dies with it. The sentinels
// would mend that after some seconds.
func (s *Sentinel) Detach() {
	s.t.Helper()
	master := s.Master()
	for _, r := range s.servers {
		if r != master && !strings.Contains(r.ask("REPLICAOF 127.0.0.1 1"), "OK") {
			s.t.Fatalf("the replica at %s follows the master still", r.Addr())
		}
	}
}

// KillMaster ends the master with SIGKILL and waits until another server is it.
func (s *Sentinel) KillMaster() {
	s.t.Helper()
	old := s.Master()
	old.Stop()
	if !await.Within(2*await.Long, func() bool { return s.Master() != old }) {
		s.t.Fatalf("no other server became the master:\n%s", s.sentinels[0].proc.Tail(10))
	}
}

// LoseAll kills the master and has the next one lose everything, as one that was made a replica a moment ago and has
// nothing yet.
func (s *Sentinel) LoseAll() {
	s.t.Helper()
	s.KillMaster()
	s.Master().ask("FLUSHALL")
}

func (s *Sentinel) kill() {
	for _, x := range s.sentinels {
		x.proc.Kill()
	}
}
