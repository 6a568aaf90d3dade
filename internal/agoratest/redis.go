package agoratest

import (
	"errors"
	"fmt"
	"net"
	"os/exec"
	"strconv"
	"strings"
	"testing"
	"time"
)

// RedisServer is a real redis-server of the tests' own, on loopback. It keeps
// nothing over a restart.
type RedisServer struct {
	path    string
	port    int
	dir     string
	cluster bool
	flags   []string    // more of its command line
	fail    func(error) // what a server that does not start does to the test

	cmd *exec.Cmd // nil while it is stopped
}

// Redis starts a redis-server and stops it when the test ends. It fails the test when none is installed.
func Redis(t testing.TB) *RedisServer {
	t.Helper()
	return redisWith(t)
}

// redisWith starts a redis-server with more on its command line.
func redisWith(t testing.TB, flags ...string) *RedisServer {
	t.Helper()
	s := &RedisServer{dir: t.TempDir(), flags: flags, fail: func(err error) { t.Helper(); t.Fatal(err) }}
	t.Cleanup(s.Stop)
	s.Start()
	return s
}

// RedisCluster starts a Redis Cluster of one node in dir: it holds every slot, and
// refuses a script whose keys are of different slots like a larger one. It takes more
// than two seconds to be ready, so the tests of a package share one: the caller stops it.
func RedisCluster(dir string) (*RedisServer, error) {
	s := &RedisServer{dir: dir, cluster: true}
	s.fail = func(err error) { panic(err) }
	return s, s.start()
}

// Addr returns its host and port, the same after a restart.
func (s *RedisServer) Addr() string { return net.JoinHostPort("127.0.0.1", strconv.Itoa(s.port)) }

// Start starts it, empty, and returns when it answers. It does nothing while the server runs.
func (s *RedisServer) Start() {
	if err := s.start(); err != nil {
		s.fail(err)
	}
}

func (s *RedisServer) start() error {
	var err error
	if s.path, err = exec.LookPath("redis-server"); err != nil {
		return errors.New("install redis-server: these tests run against a real one")
	}
	for range 5 {
		if s.cmd != nil {
			return nil
		}
		if s.port == 0 {
			if s.port, err = steadyPort(); err != nil {
				return err
			}
		}
		if err = s.try(); err != nil {
			s.Stop()
		}
	}
	return err
}

// Stop kills it, without a chance to save anything, and waits for its end. It does nothing when it is stopped.
func (s *RedisServer) Stop() {
	if s.cmd == nil {
		return
	}
	_ = s.cmd.Process.Kill()
	_ = s.cmd.Wait() // killed: the error says no more
	s.cmd = nil
}

// try starts the process and waits for it to answer.
func (s *RedisServer) try() error {
	args := []string{"--port", strconv.Itoa(s.port), "--bind", "127.0.0.1", "--dir", s.dir,
		"--save", "", "--appendonly", "no", "--daemonize", "no", "--loglevel", "warning"}
	args = append(args, s.flags...)
	if s.cluster {
		bus, err := steadyPort()
		if err != nil {
			return err
		}
		args = append(args, "--cluster-enabled", "yes", "--cluster-port", strconv.Itoa(bus),
			"--cluster-config-file", fmt.Sprintf("nodes-%d.conf", time.Now().UnixNano()))
	}
	cmd := exec.Command(s.path, args...)
	cmd.SysProcAttr = dieWithParent()
	if err := cmd.Start(); err != nil {
		return err
	}
	s.cmd = cmd
	// Asked for its folder: another server may have taken the port before ours could.
	if err := s.await("CONFIG GET dir", s.dir); err != nil || !s.cluster {
		return err
	}
	s.ask("CLUSTER ADDSLOTSRANGE 0 16383")
	return s.await("CLUSTER INFO", "cluster_state:ok")
}

// await asks until the answer holds a text.
func (s *RedisServer) await(command, text string) error {
	deadline := time.Now().Add(5 * time.Second)
	for time.Now().Before(deadline) {
		if strings.Contains(s.ask(command), text) {
			return nil
		}
		<-time.After(5 * time.Millisecond)
	}
	return fmt.Errorf("redis-server at %s does not come to answer %s", s.Addr(), command)
}

func (s *RedisServer) ask(command string) string { return ask(s.Addr(), command) }

// ask sends one inline command to a server and returns its short answer; empty when there is none.
func ask(addr, command string) string {
	c, err := net.DialTimeout("tcp", addr, time.Second)
	if err != nil {
		return ""
	}
	defer c.Close()
	_ = c.SetDeadline(time.Now().Add(time.Second))
	if _, err := c.Write([]byte(command + "\r\n")); err != nil {
		return ""
	}
	b := make([]byte, 4096)
	n, _ := c.Read(b) // what came counts
	return strings.TrimSpace(string(b[:n]))
}
