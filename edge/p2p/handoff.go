package p2p

import (
	"context"
	"errors"
	"io"
	"time"

	"github.com/libp2p/go-libp2p/core/network"

	"github.com/agora-relay/agora"
	"github.com/agora-relay/agora/edge"
	"github.com/agora-relay/agora/edge/carrier"
	"github.com/agora-relay/agora/internal/p2phost"
	core "github.com/agora-relay/agora/wire"
	wire "github.com/agora-relay/agora/wire/p2p"
)

// serveHandoff answers a stream on which a request is handed off: to an agent, or to the cluster, whose requests name
// their agent. Whose it is comes first: of a stranger nothing is read. What is kept of a request counts until its
// answer is over.
func (v *server) serveHandoff(s *question) {
	begun := time.Now()
	in := &kept{Reader: s, over: s.over}
	defer in.release()
	who, q, err := v.readHandoff(s, in, begun)
	if err != nil {
		v.stats.Handoffs.Observe(time.Since(begun))
		v.stats.handoff(wire.FaultOf(err).Code)
		p2phost.Refuse(s, wire.AppendFault(nil, err), writeTime)
		return
	}
	err = v.handOff(s, who, q)
	v.stats.Handoffs.Observe(time.Since(begun))
	var broken *p2phost.BrokenOff
	switch {
	case errors.As(err, &broken):
		v.stats.handoff(wire.FaultOf(broken.Why).Code)
		_ = s.Reset()
	case err != nil:
		v.stats.handoff(wire.FaultOf(err).Code)
		finish(s, wire.AppendFault(nil, err))
	default:
		v.stats.handoff(200)
	}
}

// readHandoff returns who hands a request off, and the request.
func (v *server) readHandoff(s *question, in *kept, begun time.Time) (*asker, wire.Request, error) {
	who, err := v.asker(s)
	if err != nil {
		return nil, wire.Request{}, err
	}
	_ = s.SetReadDeadline(begun.Add(v.cfg.Handoff.Within)) // what is over fails to be read
	q, err := wire.Read(in, v.cfg.Handoff.Request)
	_ = s.SetReadDeadline(time.Time{})
	if in.full != nil {
		err = in.full
	}
	return who, q, err
}

// asker returns who hands off; UNAVAILABLE while the edge holds as much as it can.
func (v *server) asker(q *question) (*asker, error) {
	ctx, cancel := context.WithTimeout(v.ctx, cardTime)
	defer cancel()
	who, err := v.asks(ctx, q)
	if err == nil && (q.over.sheds() || v.node.Shedder().Full() != nil) {
		return nil, errFull
	}
	return who, err
}

// handOff hands a request to its agent, and writes what that answers.
func (v *server) handOff(s *question, who *asker, q wire.Request) (err error) {
	to := s.of.Agent
	if to == "" {
		if to, q, err = q.Target(); err != nil {
			return err
		}
	}
	ctx, stop := context.WithCancelCause(v.ctx)
	defer stop(nil)
	late := time.AfterFunc(v.cfg.Handoff.FirstByte, func() { stop(errLate) })
	defer late.Stop()
	v.background(func() { p2phost.Watch(s, func() { stop(errGone) }) })
	a, err := v.cfg.Carriers.Handoff(ctx, who.call(to), carrier.Handoff(q))
	if err != nil {
		return cause(ctx, err)
	}
	defer a.Close()
	return v.writeAnswer(ctx, s, a, late)
}

// kept reads a request, and counts what it has read.
type kept struct {
	io.Reader
	over *conn
	n    int
	full error // why it reads no further
}

// keptTwice is how much is kept of each byte: what decodes a request makes room for as much again.
const keptTwice = 2

// Read implements io.Reader.
func (k *kept) Read(b []byte) (int, error) {
	n, err := k.Reader.Read(b)
	k.n += keptTwice * n
	if k.full = k.over.keep(keptTwice * n); k.full != nil {
		return 0, k.full
	}
	return n, err
}

// release has what was read count no more.
func (k *kept) release() { _ = k.over.keep(-k.n) } // giving back never fails

var errFull = &agora.Error{Code: agora.Unavailable, Message: edge.Overloaded.Text, RetryAfter: time.Second}

var (
	errLate = agora.Errorf(agora.Timeout, "the agent does not answer")
	errGone = agora.Errorf(agora.StreamAborted, "who asks has gone")
)

// cause returns why something failed: what has ended ctx, if that did it.
func cause(ctx context.Context, err error) error {
	if why := context.Cause(ctx); why != nil {
		return why
	}
	return err
}

// writeAnswer writes an answer as it comes. late ends it when it does not.
func (v *server) writeAnswer(ctx context.Context, s network.MuxedStream, a carrier.Answer, late *time.Timer) error {
	for left, begun := v.cfg.Handoff.Answer, false; ; {
		m, err := a.Next(ctx)
		if errors.Is(err, io.EOF) {
			finish(s, nil)
			return nil
		}
		var b []byte
		if err == nil {
			b, err = piece(&m)
		}
		if err != nil {
			if err = cause(ctx, err); begun {
				err = &p2phost.BrokenOff{Why: err}
			}
			return err
		}
		if left -= int64(len(b)); left < 0 {
			return &p2phost.BrokenOff{Why: agora.Errorf(agora.MessageTooLarge, "the answer has more than %d bytes", v.cfg.Handoff.Answer)}
		}
		if len(b) == 0 {
			continue
		}
		late.Stop()
		_ = s.SetWriteDeadline(time.Now().Add(writeTime)) // what is over fails the write
		if _, err := s.Write(b); err != nil {
			return &p2phost.BrokenOff{Why: errGone}
		}
		late.Reset(v.cfg.Handoff.Idle)
		begun = true
	}
}

// piece returns what a part of an answer is as bytes of a stream: text and bytes as they are, JSON as its text.
func piece(m *agora.Message) ([]byte, error) {
	switch {
	case m.Part == agora.Start:
		return nil, nil // what a streamed answer begins with is for its correlation
	case m.Media != "" || m.Part != agora.Chunk:
		return m.Body, nil
	}
	text, err := core.ChunkText(m)
	return []byte(text), err
}
