package servers

import (
	"bytes"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/agora-relay/agora/internal/await"
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
	s := &RedisServer{dir: t.TempDir(), flags: append(flags, redisUsers(t, slices.Contains(flags, "--cluster-enabled"))...), fail: func(err error) { t.Helper(); t.Fatal(err) }}
	t.Cleanup(s.Stop)
	s.Start()
	return s
}

// RedisIn starts a redis-server in dir. The tests of a package share it, one after the other: the caller stops it.
func RedisIn(dir string) (*RedisServer, error) {
	s := &RedisServer{dir: dir}
	s.fail = func(err error) { panic(err) }
	return s, s.serve()
}

// RedisCluster starts a Redis Cluster of one node in dir: it holds every slot, and
// refuses a script whose keys are of different slots like a larger one. It takes more
// than two seconds to be ready, so the tests of a package share one: the caller stops it.
func RedisCluster(dir string) (*RedisServer, error) {
	s := &RedisServer{dir: dir, cluster: true}
	s.fail = func(err error) { panic(err) }
	return s, s.serve()
}

// Addr returns its host and port, the same after a restart.
func (s *RedisServer) Addr() string { return net.JoinHostPort("127.0.0.1", strconv.Itoa(s.port)) }

// Start starts it, empty, and returns when it answers. It does nothing while the server runs.
func (s *RedisServer) Start() {
	if err := s.serve(); err != nil {
		s.fail(err)
	}
}

// serve starts it where it does not run, and waits until it answers. Another server may have taken the port of one
// that is new before it could: then it gets another.
func (s *RedisServer) serve() error {
	var err error
	if s.path, err = exec.LookPath("redis-server"); err != nil {
		return errors.New("install redis-server: these tests run against a real one")
	}
	isNew := s.port == 0
	for range 5 {
		if s.cmd != nil {
			return nil
		}
		if isNew {
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
	args := append([]string{"--port", strconv.Itoa(s.port), "--bind", "127.0.0.1", "--dir", s.dir,
		"--save", "", "--appendonly", "no", "--daemonize", "no", "--loglevel", "warning"}, s.flags...)
	if s.cluster {
		bus, err := steadyPort()
		if err != nil {
			return err
		}
		args = append(args, "--cluster-enabled", "yes", "--cluster-port", strconv.Itoa(bus),
			"--cluster-config-file", fmt.Sprintf("nodes-%d.conf", time.Now().UnixNano()))
	}
	said, err := os.Create(s.log())
	if err != nil {
		return err
	}
	defer said.Close() // the process has its own
	cmd := exec.Command(s.path, args...)
	cmd.Stdout, cmd.Stderr, cmd.SysProcAttr = said, said, dieWithParent()
	if err := cmd.Start(); err != nil {
		return err
	}
	s.cmd = cmd
	// Asked for its folder: that of another server is another.
	if err := s.answers("CONFIG GET dir", s.dir); err != nil || !s.cluster {
		return err
	}
	s.ask("CLUSTER ADDSLOTSRANGE 0 16383")
	return s.answers("CLUSTER INFO", "cluster_state:ok")
}

// log is the file that takes what it says.
func (s *RedisServer) log() string { return filepath.Join(s.dir, fmt.Sprintf("redis-%d.log", s.port)) }

// answers asks until the answer holds a text, or the server has said why it ends.
func (s *RedisServer) answers(command, text string) error {
	answered := false
	var said []byte
	await.Within(await.Long, func() bool {
		answered = strings.Contains(s.ask(command), text)
		said, _ = os.ReadFile(s.log())
		return answered || bytes.Contains(said, []byte("aborting")) || bytes.Contains(said, []byte("FATAL"))
	})
	if !answered {
		return fmt.Errorf("redis-server at %s does not come to answer %s:\n%s", s.Addr(), command, said)
	}
	return nil
}

func (s *RedisServer) ask(command string) string { return ask(s.Addr(), command) }

// ask sends one inline command to a server and returns its short answer; empty when there is none.
func ask(addr, command string) string {
	c, err := net.DialTimeout("tcp", addr, await.Long)
	if err != nil {
		return ""
	}
	defer c.Close()
	_ = c.SetDeadline(time.Now().Add(await.Long))
	if _, err := c.Write([]byte(command + "\r\n")); err != nil {
		return ""
	}
	b := make([]byte, 4096)
	n, _ := c.Read(b) // what came counts
	return strings.TrimSpace(string(b[:n]))
}
