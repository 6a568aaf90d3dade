package party

import (
	"context"
	"errors"
	"io"
	"maps"
	"sync"

	"github.com/agora-relay/agora"
	"github.com/agora-relay/agora/edge"
	"github.com/agora-relay/agora/edge/call"
	"github.com/agora-relay/agora/internal/await"
)

// Core is the core itself, without any door: parties that hold a session, and ask by calls. What the suite says of
// doors, it says of this.
func Core() Door {
	return Door{Name: "core", Dialect: agora.OwnDialect, Can: Everything, TooMuch: mostFrame, Enter: enterCore} // bytes: limits.frame
}

// coreParty is an agent of the core.
type coreParty struct {
	*Ear
	seat    Seat
	numbers numbers
	work    sync.WaitGroup // connections, and answers that are read

	mu      sync.Mutex // guards the fields below
	link    *coreLink  // nil while there is none
	token   string
	last    uint64            // position in the mailbox that was heard
	spaces  map[string]uint64 // the same for spaces
	stalled bool
	waiting map[string]*call.Answer // by the name of the request
}

func enterCore(ctx context.Context, seat Seat) (Party, error) {
	p := &coreParty{Ear: NewEar(), seat: seat, numbers: numbers{}, spaces: map[string]uint64{}, waiting: map[string]*call.Answer{}}
	seat.T.Cleanup(func() {
		p.Drop()
		p.work.Wait()
	})
	return p, p.connect(ctx, edge.Hello{Card: agora.Agent{ID: seat.ID, Name: string(seat.ID), Skills: seat.Skills}})
}

// connect begins or resumes the session.
func (p *coreParty) connect(ctx context.Context, h edge.Hello) error {
	actor, err := p.seat.Cluster.Node(p.seat.Edge).Authenticate(ctx, edge.Credentials{Token: p.seat.Token})
	if err != nil {
		return err
	}
	l := &coreLink{p: p, wake: make(chan struct{}, 1)}
	l.life, l.end = context.WithCancel(context.Background())
	h.Proof, h.Conn = edge.ByWrite, "core"
	s, w, err := actor.Open(ctx, h, l)
	if err != nil {
		l.end()
		return err
	}
	l.session = s
	if !w.Resumed {
		p.numbers = numbers{}
	}
	p.mu.Lock()
	p.link, p.token, p.last = l, w.ResumeToken, max(p.last, w.LastSeq)
	p.mu.Unlock()
	p.Open()
	s.Begin()
	p.work.Go(l.serve)
	return nil
}

// Say is that of a [Party].
func (p *coreParty) Say(ctx context.Context, w Word) error {
	p.mu.Lock()
	l := p.link
	p.mu.Unlock()
	if l == nil {
		return ErrGone
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(l.life, cancel)()
	err := p.say(ctx, l, w)
	if err != nil && l.life.Err() != nil {
		return ErrGone
	}
	return err
}

func (p *coreParty) say(ctx context.Context, l *coreLink, w Word) error {
	switch {
	case w.Kind == agora.Request && w.Part == agora.Whole && w.Request != "":
		return p.ask(ctx, l, w)
	case w.Kind == agora.Request && w.Part == agora.Cancel && w.Request != "":
		p.mu.Lock()
		a := p.waiting[w.Request]
		p.mu.Unlock()
		a.Close()
		return nil
	}
	n := p.numbers.next(w.place())
	told := make(chan edge.Notice, 1)
	c := edge.Command{Verb: edge.Publish, Space: w.Space, N: n, Data: w.Body, Told: func(n edge.Notice) { told <- n }}
	if w.Kind != agora.Event {
		c = edge.Command{Verb: edge.Send, Message: p.message(l, w, n), Told: c.Told}
	}
	err := l.session.Do(ctx, &c)
	if err == nil {
		select {
		case t := <-told:
			if t.Err != nil {
				err = t.Err
			}
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	if ctx.Err() == nil && (err == nil || agora.AsError(err).Code != agora.Unavailable) {
		p.numbers.use(w.place(), n)
	}
	return err
}

// message is a word as the core moves it.
func (p *coreParty) message(l *coreLink, w Word, n uint64) agora.Message {
	m := agora.Message{Kind: w.Kind, Part: w.Part, From: w.As, To: agora.Address{Agent: w.Peer}, Stream: w.Stream, N: n, Body: w.Body}
	switch {
	case w.Part == agora.Chunk:
		m.Media = agora.MediaText
	case w.Part == agora.Cancel:
		m.Kind = agora.Request // the session knows whose stream it is
	case w.Part <= agora.Start:
		m.Body = named(w.Body, w.Request)
		if w.Kind == agora.Reply {
			m.Meta.Parent = w.Request
		}
	}
	if w.Deadline > 0 {
		m.Meta.Deadline = l.session.Now().Add(w.Deadline)
	}
	return m
}

// ask makes a call, and hears its answer.
func (p *coreParty) ask(ctx context.Context, l *coreLink, w Word) error {
	a, err := l.session.Request(ctx, call.Request{
		Message: agora.Message{ID: w.Request, To: agora.Address{Agent: w.Peer}, Body: named(w.Body, w.Request)}, Within: w.Deadline,
	})
	if err != nil {
		return err
	}
	p.mu.Lock()
	p.waiting[w.Request] = a
	p.mu.Unlock()
	p.work.Go(func() {
		defer a.Close()
		for {
			m, err := a.Next(l.life)
			switch {
			case errors.Is(err, io.EOF) || l.life.Err() != nil:
				return
			case err != nil:
				l.put(Word{Kind: agora.Reply, Part: agora.Abort, Peer: w.Peer, Request: w.Request, Code: agora.AsError(err).Code})
				return
			}
			answer, _ := wordOf(&m)
			answer.Request = w.Request
			l.put(answer)
		}
	})
	return nil
}

// Leave is that of a [Party].
func (p *coreParty) Leave() {
	p.mu.Lock()
	l := p.link
	p.mu.Unlock()
	if l != nil {
		l.mu.Lock()
		l.goodbye = true
		l.mu.Unlock()
		l.end()
	}
	p.work.Wait()
}

// Drop is that of a [Party]. An edge that is cut off can't settle the session in a while: that is not waited for.
func (p *coreParty) Drop() {
	p.mu.Lock()
	l := p.link
	p.mu.Unlock()
	if l != nil {
		l.lost()
	}
}

// Return is that of a [Party].
func (p *coreParty) Return(ctx context.Context, k int) error {
	p.Drop()
	p.mu.Lock()
	p.seat.Edge = k
	h := edge.Hello{Card: agora.Agent{ID: p.seat.ID}, Resume: p.token, LastSeq: p.last, HasLast: true, Spaces: maps.Clone(p.spaces)}
	p.mu.Unlock()
	return untilBound(ctx, func() error { return p.connect(ctx, h) })
}

// untilBound tries to return until the edge lets it: the agent's old edge may not be known to be dead yet.
func untilBound(ctx context.Context, try func() error) (err error) {
	await.Within(await.Long, func() bool {
		err = try()
		e := agora.AsError(err)
		return err == nil || e.Code != agora.Unavailable && e.Code != agora.AgentExists || ctx.Err() != nil
	})
	return err
}

// Stall is that of a [Party].
func (p *coreParty) Stall(on bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.stalled = on
	if p.link != nil {
		p.link.Wake()
	}
}

// Join is that of a [Party].
func (p *coreParty) Join(ctx context.Context, space string) error {
	p.mu.Lock()
	l := p.link
	p.mu.Unlock()
	return l.session.Do(ctx, &edge.Command{Verb: edge.Join, Space: space})
}

// Look is that of a [Party].
func (p *coreParty) Look(ctx context.Context, id agora.AgentID) (agora.Agent, error) {
	p.mu.Lock()
	l := p.link
	p.mu.Unlock()
	return l.session.Actor().Directory().Card(ctx, id)
}
