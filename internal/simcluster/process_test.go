package simcluster

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/agora-relay/agora"
	"github.com/agora-relay/agora/internal/simnet"
)

// process is an agent that edges dial, without a socket: as agoratest's LineNode, it takes a line for each thing said.
type process struct {
	w  *world
	id agora.AgentID
	at string // its address
	addressee
	next int // what is said to it next; guarded by the world's mu, like addressee

	mu      sync.Mutex // guards the fields below
	stopped bool
	mute    time.Time // until when it answers no pings
	dials   int
	asking  int       // registrations that are under way
	asked   time.Time // when one was last
	conns   map[*dialledConn]bool
	words   []string // "<from> <payload>" in the order in which they came
	seen    map[uint64]bool
	last    uint64
	wrong   []string
}

// dialledConn is the process's end of a connection.
type dialledConn struct {
	net.Conn
	e     *node
	began time.Time // when its edge said that the session is there; zero before
	ended bool      // by the process
}

func newProcess(w *world, id agora.AgentID, at string) *process {
	return &process{w: w, id: id, at: at, conns: map[*dialledConn]bool{}, seen: map[uint64]bool{}}
}

var errRefused = errors.New("connection refused")

// connector returns what an edge connects by.
func (s *dialled) connector(e *node) func(context.Context, string, string) (net.Conn, error) {
	return func(ctx context.Context, _, address string) (net.Conn, error) {
		for _, p := range s.nodes {
			if p.at == address {
				return p.accept(ctx, e)
			}
		}
		return nil, errRefused
	}
}

// named is a connection that is told from others by its address.
type named struct {
	net.Conn
	name string
}

// LocalAddr implements net.Conn.
func (n named) LocalAddr() net.Addr { return &net.UnixAddr{Name: n.name, Net: "unix"} }

// accept makes a connection from an edge. It takes a moment, as between machines.
func (p *process) accept(ctx context.Context, e *node) (net.Conn, error) {
	p.mu.Lock()
	p.dials++
	takes := time.Duration(5+p.dials*7%40) * time.Millisecond
	if p.dials%4 == 0 { // and longer now and then, so that others adopt meanwhile
		takes = lease * 6 / 5
	}
	name := fmt.Sprint(p.id, "-", p.dials)
	p.mu.Unlock()
	if !rest(ctx, takes) {
		return nil, ctx.Err()
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.stopped || e.dead.Load() || p.w.scenes.ctx.Err() != nil {
		return nil, errRefused
	}
	ours, theirs := net.Pipe()
	c := &dialledConn{Conn: simnet.Buffer(ours), e: e}
	p.conns[c] = true
	p.w.running.Go(func() {
		defer context.AfterFunc(p.w.scenes.ctx, func() { c.Close() })()
		p.serve(c)
	})
	return named{simnet.Buffer(theirs), name}, nil
}

// serve reads what an edge says.
func (p *process) serve(c *dialledConn) {
	for lines := bufio.NewScanner(c); lines.Scan(); {
		p.take(c, lines.Text())
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.conns, c)
	c.Close()
	// Nothing but its own end has an edge leave what it has just begun to hold: the one who adopts it has it.
	again := p.asking > 0 || !p.asked.Before(c.began) // its owner's new connection takes its place
	if short := !again && !c.began.IsZero() && time.Since(c.began) < time.Second; short && !c.ended && !c.e.dead.Load() && c.e.life.Err() == nil && !p.w.laxNow() {
		p.wrong = append(p.wrong, fmt.Sprintf("%s has let go of what it has just begun to hold", c.e.id))
	}
}

func (w *world) laxNow() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.lax
}

// take handles one line of an edge's.
func (p *process) take(c *dialledConn, line string) {
	word, rest, _ := strings.Cut(line, " ")
	p.mu.Lock()
	defer p.mu.Unlock()
	switch word {
	case "hello":
		c.began = time.Now()
		p.w.say("%s holds %s", c.e.id, rest)
	case "ping":
		if !time.Now().Before(p.mute) {
			fmt.Fprintln(c, "pong "+rest) // a connection that is gone is gone
		}
	case "message", "again":
		var seq uint64
		_, what, _ := strings.Cut(rest, " ")
		_, _ = fmt.Sscan(rest, &seq)
		switch {
		case !strings.HasPrefix(what, "speaker "): // a gap, which may be told again
		case !p.seen[seq] && seq < p.last:
			p.wrong = append(p.wrong, fmt.Sprintf("%q came after position %d", line, p.last))
			fallthrough
		case !p.seen[seq]:
			p.seen[seq], p.last = true, seq
			p.words = append(p.words, what)
		case word != "again" && !p.w.laxNow(): // else two edges may hold it for a moment, as with agents that come by themselves
			p.wrong = append(p.wrong, fmt.Sprintf("%q came again, and is not marked", line))
		}
	}
}

// silence has it answer no pings for a while.
func (p *process) silence(d time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.mute = time.Now().Add(d)
}

// registering notes that its owner has it registered, or has had.
func (p *process) registering(n int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.asking, p.asked = p.asking+n, time.Now()
}

// stop has the process end, or begin again at its address.
func (p *process) stop(stopped bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.stopped = stopped; !stopped {
		return
	}
	for c := range p.conns {
		c.ended = true
		c.Close()
	}
}

// connections names the edges that have connections to it.
func (p *process) connections() (edges []string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for c := range p.conns {
		edges = append(edges, c.e.id)
	}
	slices.Sort(edges)
	return edges
}

func (p *process) got() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return append([]string(nil), p.words...)
}

func (p *process) faults() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return append([]string(nil), p.wrong...)
}
