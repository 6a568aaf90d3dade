// Package simlog is a log as Agora relies on it, within the process and under fake time: a real NATS server in memory,
// and before it the faults that a cluster of three would have. A leader dies with what it had not passed on, or after
// it was stored and before anybody was told; what is republished is lost, comes late or twice; replicas lag; everything
// is lost. It runs in a bubble of [testing/synctest].
package simlog

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	_ "unsafe" // for go:linkname

	"github.com/nats-io/nats-server/v2/server"
)

// clockUsers counts who uses the server's clock of accesses, a goroutine of the process. Where somebody uses the clock
// already, none is started: in a bubble it would be one that never waits. So a simulated log counts as a user while it
// is there, and no longer: real servers drop what is old by that clock.
//
//go:linkname clockUsers github.com/nats-io/nats-server/v2/server/ats.refs
var clockUsers atomic.Int64

// maxPayload is the largest message that the log takes.
const maxPayload = 8 << 20

// Log is the log. Its methods may be called at the same time.
type Log struct {
	Faults
	dir string

	mu    sync.Mutex // guards the fields below
	srv   *server.Server
	lines []*line // in the order in which they came to be: whatever happens to all happens in that

	stopped bool // for now, and connections are refused
}

// Start starts an empty log, whose faults are decided by a seed. The caller owes a call of Stop.
func Start(seed uint64) (*Log, error) {
	dir, err := folder()
	if err != nil {
		return nil, err
	}
	l := &Log{dir: dir}
	l.Faults.init(seed)
	clockUsers.Add(1)
	if l.srv, err = l.serve(); err != nil {
		clockUsers.Add(-1)
		os.RemoveAll(dir)
		return nil, err
	}
	return l, nil
}

var folders atomic.Int64

// folder makes a folder: memory storage keeps what streams there are in files. Nothing is drawn for its name: what
// another process has left must not change what chance is asked for.
func folder() (string, error) {
	dir := filepath.Join(os.TempDir(), fmt.Sprintf("simlog-%d-%d", os.Getpid(), folders.Add(1)))
	if err := os.RemoveAll(dir); err != nil {
		return "", err
	}
	return dir, os.Mkdir(dir, 0o700)
}

// storage is how much the log may keep: what the machine has must not change what it says.
const storage = 4 << 30

func (l *Log) serve() (*server.Server, error) {
	srv, err := server.NewServer(&server.Options{
		ServerName: "log", DontListen: true, NoSigs: true, NoLog: true, JetStream: true, StoreDir: l.dir, MaxPayload: maxPayload,
		JetStreamMaxMemory: storage, JetStreamMaxStore: storage,
	})
	if err != nil {
		return nil, fmt.Errorf("simulated log: %w", err)
	}
	srv.Start()
	return srv, nil
}

var errDown = errors.New("simulated log: the server is down")

// Dial connects to the log.
func (l *Log) Dial(context.Context) (net.Conn, error) {
	d := newLine(l)
	srv, err := l.add(d)
	if err != nil {
		return nil, err
	}
	createClient(srv, &inside{line: d})
	return d, nil
}

// add adds a line to the server that there is.
func (l *Log) add(d *line) (*server.Server, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.stopped || !l.srv.Running() {
		return nil, errDown
	}
	l.lines = append(l.lines, d)
	return l.srv, nil
}

func (l *Log) forget(d *line) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.lines = slices.DeleteFunc(l.lines, func(x *line) bool { return x == d })
}

func (l *Log) all() []*line {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.lines)
}

// Empty has the server lose everything, streams included, as servers do that are made again. Connections end.
func (l *Log) Empty() error {
	l.shutdown()
	if err := os.RemoveAll(l.dir); err != nil {
		return err
	}
	srv, err := l.serve()
	if err != nil {
		return err
	}
	l.Faults.set(func() {
		clear(l.ids)
		clear(l.lag)
	})
	l.mu.Lock()
	defer l.mu.Unlock()
	l.srv = srv
	return nil
}

func (l *Log) server() *server.Server {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.srv
}

func (l *Log) shutdown() {
	srv := l.server()
	srv.Shutdown()
	srv.WaitForShutdown()
}

// Stop ends the server, and all that the log had.
func (l *Log) Stop() error {
	l.shutdown()
	clockUsers.Add(-1)
	return os.RemoveAll(l.dir)
}
