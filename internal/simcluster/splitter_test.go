package simcluster

import (
	"context"
	"sync"

	"github.com/agora-relay/agora"
	"github.com/agora-relay/agora/edge"
	"github.com/agora-relay/agora/edge/demux"
)

// splitter is a connection of the agent that has readers: it is the edge.Conn of its session, and hands on what comes.
type splitter struct {
	*demux.Demux
	readers *readers
	begun   chan struct{} // closed once session is set, or there is none
	session *edge.Session
	lost    chan struct{} // closed once the connection is gone
	losing  sync.Once
	leaving sync.Once
	off     func() bool
}

// enter connects the agent to an edge; nil where that does not take it.
func (s *readers) enter(ctx context.Context, e *node) *splitter {
	s.w.mu.Lock()
	s.opens++
	turn, resume := s.opens, s.token
	s.w.mu.Unlock()
	x := &splitter{readers: s, begun: make(chan struct{}), lost: make(chan struct{})}
	x.Demux = demux.New(demux.Config{
		Serve: func(y *demux.Exchange) { s.serve(turn, y) }, Other: s.other,
		Queue: 4 * longer, Lagging: 4, Whole: 4, Records: s.w.plan.Records, Patience: standsStill,
	})
	try, cancel := e.at(ctx)
	defer cancel()
	hello := edge.Hello{Card: agora.Agent{ID: reader, Name: string(reader)}, Conn: string(reader), Resume: resume, Proof: edge.ByReader, Slow: x.Slow}
	session, welcome, err := e.actor.Open(try, hello, x)
	if err != nil {
		close(x.begun)
		x.Demux.Close()
		if agora.AsError(err).Code == agora.InvalidRequest {
			s.w.mu.Lock()
			s.token = "" // which was wrong
			s.w.mu.Unlock()
		}
		return nil
	}
	s.w.mu.Lock()
	s.begun, s.token, s.newest = true, welcome.ResumeToken, turn
	s.w.note("the readers are at %s, session goes on: %v", e.id, welcome.Resumed)
	s.w.mu.Unlock()
	x.session = session
	close(x.begun)
	x.off = context.AfterFunc(e.life, x.lose)
	x.Begin(session)
	return x
}

// other takes what concerns no stream and no message.
func (s *readers) other(v edge.Delivery) {
	s.w.mu.Lock()
	defer s.w.mu.Unlock()
	s.gaps = s.gaps || v.Message != nil && v.Message.Kind == agora.Gap
}

// Notify implements edge.Conn.
func (x *splitter) Notify(n edge.Notice) {
	if n.Kind == edge.NoticePing {
		x.readers.w.running.Go(func() {
			if <-x.begun; x.session != nil {
				x.session.Pong(n.Data)
			}
		})
	}
}

// Close implements edge.Conn.
func (x *splitter) Close(edge.Reason) { x.lose() }

func (x *splitter) lose() { x.losing.Do(func() { close(x.lost) }) }

// leave ends the connection, and the session where it is polite.
func (x *splitter) leave(polite bool) {
	x.leaving.Do(func() {
		x.off()
		x.Demux.Close()
		x.session.Closed(polite)
	})
}
