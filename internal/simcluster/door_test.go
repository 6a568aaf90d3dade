package simcluster

import (
	"context"
	"sync"
	"time"

	"github.com/agora-relay/agora"
	"github.com/agora-relay/agora/edge"
	"github.com/agora-relay/agora/spaces"
)

// door is a connection of an agent to an edge without a socket: two queues that keep their order, what is in them is
// lost or still read when one end goes. It is the edge.Conn of its session.
type door struct {
	w     *world
	a     *agent
	e     *node
	hello edge.Hello
	ctx   context.Context // of its verbs
	stop  context.CancelFunc

	turn    int // of its session among the agent's; guarded by the world's mu
	session *edge.Session

	mu      sync.Mutex // guards the fields below
	moved   sync.Cond  // on mu
	up      []upward   // written by the agent, not read by the edge
	gone    bool       // the agent's end is closed
	ended   bool       // the edge's end is closed: nothing is read any more
	silent  bool       // ended with a goodbye
	down    []downward // written by the edge, not read by the agent
	queued  []downward // to be written before any delivery
	woken   bool
	over    bool // no verb runs any more: the writer ends
	closed  bool // the session has closed it
	paused  bool // the agent reads nothing
	stirred bool // there may be something to say
	leaves  int  // how often the agent has asked to leave the space
}

// upward is a frame of the agent's.
type upward struct {
	part  *part // a message
	ack   uint64
	space string // of ack; or to join or leave
	nth   int    // with join: how often the agent had asked to leave before
	pong  uint64
	verb  verb
	do    func(context.Context, *edge.Session) // of does
}

type verb int

const (
	say verb = iota
	acknowledge
	answer // a ping
	join
	leave
	cancel // a stream of a peer's
	goodbye
	does // what a scene wants
)

// downward is a frame of the edge's.
type downward struct {
	welcome  *edge.Welcome
	refused  error // instead of a welcome
	notice   *edge.Notice
	joined   *spaces.Joined
	nth      int // of the join that this answers
	left     bool
	delivery *edge.Delivery
}

// room is how many frames fit between an edge and an agent that does not read.
const room = 64

// open connects an agent to an edge. The world's mu is held.
func (w *world) open(a *agent, e *node, h edge.Hello) *door {
	d := &door{w: w, a: a, e: e, hello: h}
	d.moved.L = &d.mu
	d.ctx, d.stop = context.WithCancel(context.Background())
	w.doors = append(w.doors, d)
	w.running.Go(d.serve)
	w.running.Go(d.client)
	return d
}

// Wake implements edge.Conn.
func (d *door) Wake() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.woken = true
	d.moved.Broadcast()
}

// Notify implements edge.Conn.
func (d *door) Notify(n edge.Notice) {
	if n.Kind == edge.NoticeFault {
		d.w.refuse(d.a, n)
	}
	d.queue(downward{notice: &n})
}

// Close implements edge.Conn.
func (d *door) Close(edge.Reason) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.closed, d.ended = true, true
	d.stop()
	d.moved.Broadcast()
}

func (d *door) queue(f downward) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if !d.ended {
		d.queued = append(d.queued, f)
		d.moved.Broadcast()
	}
}

// drop is what an agent does that is cut off, or gives the connection up: the edge reads on, for a while, what was
// written.
func (d *door) drop(noticed time.Duration) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.gone, d.down = true, nil
	d.moved.Broadcast()
	d.w.running.Go(func() {
		<-time.After(noticed)
		d.lose(noticed)
	})
}

// lose is what the edge sees of a connection that is lost.
func (d *door) lose(time.Duration) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.gone, d.ended, d.down = true, true, nil
	d.stop()
	d.moved.Broadcast()
}

// serve is the edge's end: it opens the session, reads, and settles it.
func (d *door) serve() {
	defer d.stop()
	s, welcome, err := d.e.actor.Open(d.ctx, d.hello, d)
	if err != nil {
		d.mu.Lock()
		d.down, d.closed, d.ended = append(d.down, downward{refused: err}), true, true
		d.moved.Broadcast()
		d.mu.Unlock()
		return
	}
	d.session = s
	d.w.opened(d)
	d.queue(downward{welcome: &welcome})
	s.Begin()
	var writer sync.WaitGroup
	writer.Go(d.write)
	for {
		f, ok := d.next()
		if !ok {
			break
		}
		d.e.pass()
		d.handle(f)
	}
	d.mu.Lock()
	d.over = true
	polite := d.silent
	d.moved.Broadcast()
	d.mu.Unlock()
	writer.Wait()
	d.e.pass()
	s.Closed(polite)
}

// next returns the next frame of the agent's; false when nothing comes any more.
func (d *door) next() (upward, bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for len(d.up) == 0 && !d.ended {
		d.moved.Wait()
	}
	if d.ended {
		return upward{}, false
	}
	f := d.up[0]
	d.up = d.up[1:]
	return f, true
}

// handle does what a door does with a frame.
func (d *door) handle(f upward) {
	s := d.session
	switch f.verb {
	case say:
		d.say(f.part)
	case acknowledge:
		if err := s.Do(d.ctx, &edge.Command{Verb: edge.Ack, Space: f.space, Seq: f.ack}); err != nil {
			d.w.fail("%s: ack of %d, which was delivered, is refused: %v", d.a.id, f.ack, err)
		}
	case answer:
		s.Pong(f.pong)
	case join:
		_ = s.Do(d.ctx, &edge.Command{Verb: edge.Join, Space: f.space, Done: func(o edge.Outcome) { d.queue(downward{joined: &o.Joined, nth: f.nth}) }})
	case leave:
		_ = s.Do(d.ctx, &edge.Command{Verb: edge.Leave, Space: f.space, Done: func(edge.Outcome) { d.queue(downward{left: true}) }})
	case cancel:
		m := agora.Message{Kind: agora.Request, Part: agora.Cancel, Stream: f.part.stream, To: agora.Address{Agent: f.part.from.id}}
		if s.Do(d.ctx, &edge.Command{Verb: edge.Send, Message: m}) == nil {
			d.w.silenced(d.a, f.part)
		}
	case does:
		f.do(d.ctx, s)
	case goodbye:
		d.mu.Lock()
		d.silent, d.ended = true, true
		d.mu.Unlock()
	}
}

// say hands a message to the session, and its refusal to the agent.
func (d *door) say(p *part) {
	var err error
	if p.lane.to.IsSpace() {
		err = d.session.Do(d.ctx, &edge.Command{Verb: edge.Publish, Space: p.lane.to.Space, N: p.n, Data: p.data(), ID: p.id, Receipts: agora.Stored})
	} else {
		err = d.session.Do(d.ctx, &edge.Command{Verb: edge.Send, Message: p.message(), ID: p.requestID(), Receipts: p.receipts()})
	}
	d.w.handed(d, p, err)
	if err != nil {
		d.queue(downward{notice: &edge.Notice{
			Kind: edge.NoticeFault, RequestID: p.requestID(), To: p.lane.to, N: p.n, Stream: p.stream, Err: agora.AsError(err),
		}})
	}
}

// write is the edge's writer.
func (d *door) write() {
	for {
		d.mu.Lock()
		for len(d.queued) == 0 && !d.woken && !d.over {
			d.moved.Wait()
		}
		out, over := d.queued, d.over
		d.queued, d.woken = nil, false
		d.mu.Unlock()
		if !d.put(out) || over || !d.pull() {
			d.mu.Lock()
			d.closed, d.ended = true, true // what was written is there to be read, then nothing
			d.moved.Broadcast()
			d.mu.Unlock()
			return
		}
	}
}

// pull writes what the session has; false when the agent will never read it.
func (d *door) pull() bool {
	d.e.pass()
	before := d.w.newest(d.a)
	ds, err := d.session.Pull(d.ctx, 2<<10, func() {})
	d.mu.Lock()
	out := d.queued
	d.queued = nil
	d.mu.Unlock()
	d.session.Queued()
	if err != nil {
		time.AfterFunc(10*time.Millisecond, d.Wake)
	}
	if len(ds) > 0 {
		d.w.pulled(d, ds, before)
		d.Wake()
	}
	for i := range ds {
		copied := ds[i]
		if ds[i].Message != nil {
			m := *ds[i].Message
			copied.Message = &m
		}
		out = append(out, downward{delivery: &copied})
	}
	if !d.put(out) {
		return false
	}
	d.session.Written()
	return true
}

// put writes frames; it blocks while the agent reads nothing, and returns false when it never will.
func (d *door) put(out []downward) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, f := range out {
		for len(d.down) >= room && !d.gone && !d.over {
			d.moved.Wait()
		}
		if d.gone {
			d.ended = true
			d.moved.Broadcast()
			return false
		}
		d.down = append(d.down, f)
		d.moved.Broadcast()
	}
	return true
}

// client is the agent's end: it reads, and writes what there is to say.
func (d *door) client() {
	for {
		in, gone, over := d.nextDown()
		if !gone {
			for _, f := range in {
				d.a.receive(d, f)
			}
			d.a.push(d)
		}
		if over && len(in) == 0 {
			d.a.lost(d)
			d.mu.Lock()
			d.gone = true
			d.moved.Broadcast()
			d.mu.Unlock()
			return
		}
	}
}

// nextDown waits until there is something to read or to say, or nothing will come any more, and takes what there is to
// read.
func (d *door) nextDown() (in []downward, gone, over bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for !d.stirred && (len(d.down) == 0 || d.paused) && !d.gone && !d.closed {
		d.moved.Wait()
	}
	d.stirred = false
	over = d.gone || d.closed
	if !d.paused || over {
		in, d.down = d.down, nil
	}
	d.moved.Broadcast()
	return in, d.gone, over
}

// stir has the agent look for what there is to say.
func (d *door) stir() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.stirred = true
	d.moved.Broadcast()
}

// tell writes frames of the agent's.
func (d *door) tell(fs ...upward) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if !d.gone {
		for i := range fs {
			fs[i].nth = d.leaves
			if fs[i].verb == leave {
				d.leaves++
			}
		}
		d.up = append(d.up, fs...)
		d.moved.Broadcast()
	}
}

// leftSince reports whether the agent has asked to leave the space after a join of its.
func (d *door) leftSince(nth int) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.leaves > nth
}

func (d *door) pause(paused bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.paused = paused
	d.moved.Broadcast()
}
