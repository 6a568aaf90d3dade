package iat

import (
	"context"
	"encoding/binary"
	"errors"
	"io"
	"net/http"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/gorilla/websocket"

	"github.com/agora-relay/agora"
	"github.com/agora-relay/agora/edge"
	"github.com/agora-relay/agora/edge/web"
	"github.com/agora-relay/agora/internal/buffer"
	"github.com/agora-relay/agora/internal/early"
	"github.com/agora-relay/agora/wire"
	"github.com/agora-relay/agora/wire/iat"
)

// Close codes of a socket, beside those of WebSocket itself: the same as at /ws.
const (
	closeTakenOver = 4001
	closeExists    = 4009
	closeKicked    = 4010
)

// closes are the close codes of the causes for which an edge ends a socket; it is 1008 for others.
var closes = map[edge.Cause]int{
	edge.Silent: websocket.CloseGoingAway, edge.TakenOver: closeTakenOver, edge.Kicked: closeKicked,
	edge.Drained: websocket.CloseServiceRestart, edge.Shed: websocket.CloseTryAgainLater,
}

// maxMessage is how large a message may be before the socket is closed; beyond limits.frame it is refused, and the
// socket stays.
const maxMessage = 32 << 20

var upgrader = websocket.Upgrader{
	CheckOrigin:     func(*http.Request) bool { return true }, // the kit has looked
	Subprotocols:    []string{wire.Subprotocol},
	ReadBufferSize:  1 << 10,
	WriteBufferPool: new(sync.Pool),
}

// socket serves an agent over a WebSocket, whose session is opened before the upgrade, so that its answer can say how
// that went.
func (d *Door) socket(x *web.Exchange) error {
	if !websocket.IsWebSocketUpgrade(x.Request) {
		return &web.Refusal{Status: http.StatusUpgradeRequired, Err: agora.Errorf(agora.InvalidRequest, "this path takes WebSockets")}
	}
	var p *peer
	var err error
	web.Apart(func() { p, err = d.openSocket(x) })
	if p == nil {
		return err
	}
	d.stats.Downlinks.Add(1)
	defer d.stats.Downlinks.Add(-1)
	p.serve(x.Context())
	return nil
}

// openSocket opens the session of an agent, and its socket; nil where that has been answered otherwise, or err is to
// be.
func (d *Door) openSocket(x *web.Exchange) (*peer, error) {
	h, err := d.hello(x)
	if err != nil {
		return nil, err
	}
	h.Proof = edge.ByPong
	line := &frameLine{socket: new(shared)}
	l := d.newLink(line, &h)
	line.link = l
	s, w, err := x.Actor.Open(x.Context(), h, l)
	if e := agora.AsError(err); err != nil && e.Code == agora.AgentExists {
		return nil, d.turnOut(x, e)
	}
	if err != nil {
		return nil, err
	}
	header := http.Header{tokenHeader: {w.ResumeToken}, seqHeader: {strconv.FormatUint(w.LastSeq, 10)}}
	c, err := upgrader.Upgrade(sharing{x.TakeOver(), line.socket}, x.Request, header)
	if err != nil { // it has been answered, as far as it can be
		s.Report(edge.Ending{Cause: edge.Lost})
		s.Closed(false)
		return nil, nil
	}
	line.socket.out = &l.out
	l.start(s)
	return &peer{door: d, exchange: x, session: s, link: l, conn: c}, nil
}

// turnOut says on the socket why it is closed: who has the id keeps it.
func (d *Door) turnOut(x *web.Exchange, e *agora.Error) error {
	c, err := upgrader.Upgrade(early.Handshake{ResponseWriter: x.TakeOver()}, x.Request, nil)
	if err != nil {
		return nil // it has been answered
	}
	defer c.Close()
	d.stats.Errors.Count(e.Code)
	end := time.Now().Add(writeTime)
	_ = c.SetWriteDeadline(end) // the one who has gone needs no word
	_ = c.WriteMessage(websocket.TextMessage, iat.AppendFault(nil, d.says(), e))
	_ = c.WriteControl(websocket.CloseMessage, websocket.FormatCloseMessage(closeExists, e.Message), end)
	return nil
}

// writeTime bounds how long a socket may take for a piece of what is written.
const writeTime = 30 * time.Second

// peer is an agent at a WebSocket.
type peer struct {
	door     *Door
	exchange *web.Exchange
	session  *edge.Session
	link     *link
	conn     *websocket.Conn
	envelope iat.Envelope // what was said last
	faults   int          // since
	since    time.Time    // when they are counted from
	in       int64        // envelopes
}

// serve reads until the socket ends, and settles the session.
func (p *peer) serve(ctx context.Context) {
	stop := context.AfterFunc(ctx, p.link.giveUp)
	defer stop()
	out := &p.link.out
	cause, code := p.read(out.Context())
	out.Shut() // behind the close frame that answers
	out.GiveUp()
	out.Wait()
	p.conn.Close()
	if why := p.link.reason(); why.Cause != edge.Lost {
		cause = why.Cause
	}
	p.session.Report(edge.Ending{Cause: cause, Code: code, FramesIn: p.in, FramesOut: p.link.told.Load()})
	p.session.Closed(cause == edge.Goodbye)
}

// read takes what the agent says until the socket ends.
func (p *peer) read(ctx context.Context) (cause edge.Cause, code int) {
	p.conn.SetReadLimit(maxMessage)
	p.conn.SetPongHandler(func(data string) error {
		if len(data) == 8 {
			p.session.Pong(binary.BigEndian.Uint64([]byte(data)))
		}
		p.session.Alive()
		return nil
	})
	p.conn.SetPingHandler(func(data string) error {
		p.session.Alive()
		return p.conn.WriteControl(websocket.PongMessage, []byte(data), time.Now().Add(writeTime))
	})
	for {
		kind, r, err := p.conn.NextReader()
		if err != nil {
			return endOf(err)
		}
		p.session.Alive()
		if err := p.message(ctx, kind, r); err != nil {
			return endOf(err)
		}
	}
}

// errFlooded ends a socket at which too much was wrong.
var errFlooded = errors.New("too many errors")

// message reads a message and does what it says. Its error ends the socket.
func (p *peer) message(ctx context.Context, kind int, r io.Reader) (err error) {
	b := buffer.Get()
	defer buffer.Put(b)
	if b.B, err = readUpTo(r, b.B, p.door.cfg.Frame+1); err != nil {
		return err
	}
	if !p.link.out.Enter() {
		return nil // it is closing
	}
	defer p.link.out.Leave()
	p.in++
	p.door.stats.Moved.Add(1)
	if err := p.say(ctx, kind, b.B); err != nil && !p.refuse(err) {
		return errFlooded
	}
	return nil
}

// readUpTo appends to b what r has, of which more than so much is left.
func readUpTo(r io.Reader, b []byte, most int) ([]byte, error) {
	for len(b) < most {
		if len(b) == cap(b) {
			b = slices.Grow(b, min(len(b)+1, most-len(b)))
		}
		n, err := r.Read(b[len(b):min(cap(b), most)])
		b = b[:len(b)+n]
		if errors.Is(err, io.EOF) {
			return b, nil
		}
		if err != nil {
			return b, err
		}
	}
	return b, nil
}

// endOf returns how a socket has ended that can't be read any more.
func endOf(err error) (edge.Cause, int) {
	if errors.Is(err, errFlooded) {
		return edge.Refused, websocket.ClosePolicyViolation
	}
	c, ok := errors.AsType[*websocket.CloseError](err)
	if !ok {
		return edge.Lost, 0
	}
	switch c.Code {
	case websocket.CloseNormalClosure, websocket.CloseGoingAway, websocket.CloseNoStatusReceived:
		return edge.Goodbye, c.Code
	}
	return edge.Lost, c.Code
}

// say does what a message says. b is used again afterwards.
func (p *peer) say(ctx context.Context, kind int, b []byte) error {
	if kind != websocket.TextMessage {
		return &iat.Fault{Err: agora.Errorf(agora.InvalidRequest, "an envelope is text")}
	}
	if len(b) > p.door.cfg.Frame {
		return &iat.Fault{Err: agora.Errorf(agora.MessageTooLarge, "the envelope has more than %d bytes", p.door.cfg.Frame)}
	}
	e := &p.envelope
	if err := iat.Decode(b, e, p.door.cfg.Limits); err != nil {
		return err
	}
	if e.Type != iat.Chunk { // of which nothing is kept but a copy
		e = e.Clone()
	}
	if err := iat.CheckAction(e); err != nil {
		return err
	}
	return about(e, p.session.Agent(), p.said(ctx, e))
}

// said does what an envelope says.
func (p *peer) said(ctx context.Context, e *iat.Envelope) error {
	as := p.session.Agent()
	s := saying{door: p.door, actor: p.session.Actor(), as: as}
	if e.Action == iat.ActionRegister {
		return p.register(ctx, e)
	}
	if e.Type == iat.Request && !e.Stream {
		if err := mayAsk(e); err != nil {
			return err
		}
		if e.Action == iat.ActionExecute {
			p.link.gives(e)
		}
		if e.Action == iat.ActionApproval {
			return s.socketApproval(ctx, e, p)
		}
	}
	if e.Action == iat.ActionAck && agora.AgentID(e.To) == agora.Cluster {
		seq, err := e.Ack()
		if err != nil {
			return err
		}
		return p.session.Do(ctx, &edge.Command{Verb: edge.Ack, Seq: seq})
	}
	s.proves = (e.Receipts|p.link.receipts)&agora.Stored != 0
	c := edge.Command{ID: e.ID, Receipts: e.Receipts, Request: e.ID}
	if e.Receipts != 0 {
		p.link.ask(e.ID)
	}
	if e.Type == iat.Chunk {
		p.door.stats.Chunks.Add(1)
	}
	if (e.Type == iat.Chunk || e.Stream) && e.Receipts == 0 && p.link.receipts == 0 {
		c.ID = "" // its stream says which one it was
	}
	return s.tellBy(ctx, e, bySession{p.session}, c)
}

// register changes the card of the session's agent, for as long as that lasts.
func (p *peer) register(ctx context.Context, e *iat.Envelope) error {
	card, err := p.door.cardOf(ctx, p.session.Actor(), e, p.session.Agent())
	if err != nil {
		return err
	}
	if err := p.session.Update(ctx, card, false); err != nil {
		return err
	}
	if e.Type == iat.Request {
		p.link.say(p.door.registered(e, &card, time.Time{}))
	}
	return nil
}

// bySession does commands in a session that is here.
type bySession struct{ *edge.Session }

func (b bySession) do(ctx context.Context, c edge.Command) error { return b.Do(ctx, &c) }

// errorsFor is in what time errors are counted that end a socket.
const errorsFor = 10 * time.Second

// refuse tells the agent what was wrong. It returns false where that was too often recently: the socket is to be
// closed.
func (p *peer) refuse(err error) bool {
	code := agora.AsError(err).Code
	p.door.stats.Errors.Count(code)
	p.link.say(iat.AppendFault(nil, p.door.says(), err))
	switch code {
	case agora.Unavailable, agora.Timeout, agora.RateLimited:
		return true
	}
	if now := time.Now(); now.Sub(p.since) > errorsFor {
		p.since, p.faults = now, 0
	}
	if p.faults++; p.faults <= p.door.cfg.MaxErrors {
		return true
	}
	p.link.Close(edge.Reason{Cause: edge.Refused, Text: "too many errors"})
	return false
}
