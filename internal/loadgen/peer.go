package loadgen

import (
	"bytes"
	"context"
	"strconv"
	"time"

	"github.com/agora-relay/agora/wire"
)

// Peer is an agent of a cluster, as an [Agent] of a load: its frames are made once.
type Peer struct {
	*Conn
	access  Access
	acks    Acks
	returns bool

	ends map[int][]byte // by line, the frame that ends its stream; who opens it has it until Close

	last    []byte // the last frame that was handed on, of one that returns; the reader's own, like the fields below
	acked   int64  // when it acknowledged last
	unacked int    // frames since
}

// Open implements Agent. A space that can't be joined now is joined later.
func (p *Peer) Open(ctx context.Context, w Way) (Line, error) {
	text := quoted(w.Text)
	switch w.Kind {
	case FanOut:
		data := append(append([]byte(`{"text":`), text...), '}')
		return framed(&wire.Frame{Type: "space.publish", Space: w.To, Data: data}), p.join(ctx, w.To)
	case OneShot:
		return framed(&wire.Frame{Type: "send", To: w.To, Payload: text, ID: Blank}), nil
	}
	chunk := &wire.Frame{Type: "send_chunk", To: w.To, StreamID: streamID(w.Line), Chunk: text}
	if w.Receipt {
		chunk.ID = Blank
		return framed(chunk), nil
	}
	if p.ends == nil {
		p.ends = map[int][]byte{}
	}
	p.ends[w.Line] = AppendText(nil, &wire.Frame{Type: "send_end", To: w.To, StreamID: streamID(w.Line)})
	err := p.Send(AppendText(nil, &wire.Frame{Type: "send", To: w.To, StreamID: streamID(w.Line), Stream: true}))
	if err != nil {
		return nil, unavailable(p.ID+" lost its connection", err)
	}
	return framed(chunk), nil
}

func framed(f *wire.Frame) Line { return NewTemplate(AppendText(nil, f)) }

// quoted returns a text of a load as JSON.
func quoted(text []byte) []byte { return append(append([]byte{'"'}, text...), '"') }

// Beginnings of frames: edges write the type first.
var (
	receiptFrame = []byte(`{"type":"receipt"`)
	errorFrame   = []byte(`{"type":"error"`)
	gapFrame     = []byte(`{"type":"gap"`)
)

// Receive implements Agent.
func (p *Peer) Receive(r Receiver) error {
	for {
		frame, err := p.Next()
		if err != nil {
			return err
		}
		p.take(frame, r)
	}
}

func (p *Peer) take(frame []byte, r Receiver) {
	switch {
	case bytes.HasPrefix(frame, receiptFrame):
		if s, ok := Find(frame); ok { // it repeats the stamp as the id of what was sent
			r.Receipted(s, p.At())
		}
	case bytes.HasPrefix(frame, errorFrame):
		r.Refused(refused(frame))
	case bytes.HasPrefix(frame, gapFrame):
		r.Gap()
	default:
		s, ok := Find(frame)
		if !ok {
			return
		}
		if p.returns {
			p.last = append(p.last[:0], frame...)
		}
		r.Arrived(s, p.At())
		p.acknowledge(frame, r)
	}
}

// refused returns what an error frame says.
func refused(frame []byte) Refusal {
	var f wire.Frame
	if err := wire.DecodeAnswer(frame, &f); err != nil {
		return Refusal{Code: "unreadable", Message: err.Error()}
	}
	r := Refusal{Code: f.Code, Message: f.Message, After: time.Duration(f.RetryAfterMS) * time.Millisecond}
	if s, ok := Find([]byte(f.RequestID)); ok {
		r.Of = &s
	} else if len(f.StreamID) > 1 && f.From == "" {
		line, err := strconv.Atoi(f.StreamID[1:])
		r.Line, r.Broken = line, err == nil
	}
	return r
}

// acknowledge tells the edge now and then how far the peer is, if it is one that does.
func (p *Peer) acknowledge(frame []byte, r Receiver) {
	if p.acks.Batch == 0 {
		return
	}
	if p.unacked++; p.unacked < p.acks.Batch && (p.acks.After == 0 || p.At()-p.acked < int64(p.acks.After)) {
		return
	}
	var f wire.Frame
	if err := wire.DecodeAnswer(frame, &f); err != nil {
		r.Refused(Refusal{Code: "unreadable", Message: err.Error()})
		return
	}
	p.unacked, p.acked = 0, p.At()
	_ = p.Send(AppendText(nil, &wire.Frame{Type: "ack", Space: f.Space, Seq: f.Seq})) // its reader sees the end
}

// Resume connects a peer that Returns to an edge again, and continues with its session after what it handed on last.
// Its Receive has returned.
func (p *Peer) Resume(ctx context.Context, edge string) (*Peer, error) {
	t := Target{Edge: edge, Agent: p.ID, Access: p.access, Resume: p.Token}
	var f wire.Frame
	if err := wire.DecodeAnswer(p.last, &f); err == nil { // else it has had nothing
		t.After = f.Seq
	}
	c, err := Dial(ctx, t)
	if err != nil {
		return nil, err
	}
	return &Peer{Conn: c, access: p.access, acks: p.acks, returns: true}, nil
}

// Close implements Agent. It ends the streams, and the session: nobody waits for the agent to return.
func (p *Peer) Close() error {
	_ = p.SetWriteDeadline(time.Now().Add(time.Second)) // the edge may read nothing any more
	for _, end := range p.ends {
		if p.Send(end) != nil {
			break // it is cut off
		}
	}
	return p.Conn.Close()
}
