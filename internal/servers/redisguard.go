package servers

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/agora-relay/agora/internal/await"
)

// RedisGuarded starts a redis-server with more on its command line, such as who may do what, and returns its host
// and port. With certificates it speaks nothing but TLS, and wants one of its clients. The test's end kills it.
func RedisGuarded(t testing.TB, c *Certificates, flags ...string) (addr string) {
	t.Helper()
	addr, port := steadyHostPort(t)
	flags = append([]string{"--bind", "127.0.0.1", "--save", "", "--appendonly", "no", "--dir", t.TempDir()}, flags...)
	if c == nil {
		flags = append(flags, "--port", port)
	} else {
		flags = append(flags, "--port", "0", "--tls-port", port, "--tls-cert-file", c.ServerCert, "--tls-key-file", c.ServerKey,
			"--tls-ca-cert-file", c.CA, "--tls-auth-clients", "yes")
	}
	startRedis(t, flags, "Ready to accept connections")
	return addr
}

// GuardedSentinel starts a sentinel that asks for a password, over a master that asks for another, and returns its
// host and port. It knows the master as "main".
func GuardedSentinel(t testing.TB, password, master, masterPassword string) (addr string) {
	t.Helper()
	addr, port := steadyHostPort(t)
	dir := t.TempDir()
	file := filepath.Join(dir, "sentinel.conf")
	conf := fmt.Sprintf("port %s\nbind 127.0.0.1\ndir %q\nrequirepass %s\nsentinel monitor %s %s 1\nsentinel auth-pass %[4]s %[6]s\n",
		port, dir, password, masterName, strings.ReplaceAll(master, ":", " "), masterPassword)
	if err := os.WriteFile(file, []byte(conf), 0o600); err != nil { // it keeps what it learns there
		t.Fatal(err)
	}
	startRedis(t, []string{file, "--sentinel"}, "+monitor master")
	return addr
}

// startRedis starts a redis-server that may not answer the one who asks, and waits for what it says when it is ready.
func startRedis(t testing.TB, args []string, ready string) {
	t.Helper()
	path, err := exec.LookPath("redis-server")
	if err != nil {
		t.Fatal("install redis-server: these tests run against a real one")
	}
	p := &Process{Argv: append([]string{path}, args...), Log: filepath.Join(t.TempDir(), "redis.log")}
	t.Cleanup(p.Kill)
	if err := p.Start(); err != nil {
		t.Fatalf("start redis-server: %v", err)
	}
	if !await.Within(await.Long, func() bool { return strings.Contains(p.Tail(100), ready) }) {
		t.Fatalf("redis-server is not ready:\n%s", p.Tail(15))
	}
}

func steadyHostPort(t testing.TB) (addr, port string) {
	t.Helper()
	addr, err := Addr()
	if err == nil {
		_, port, err = net.SplitHostPort(addr)
	}
	if err != nil {
		t.Fatal(err)
	}
	return addr, port
}
