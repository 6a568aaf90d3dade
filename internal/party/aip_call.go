package party

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"sync/atomic"

	"github.com/agora-relay/agora"
	wire "github.com/agora-relay/agora/wire/aip"
)

// aipCall is a session that a party has opened.
type aipCall struct {
	from, to agora.AgentID
	session  string
	name     string // what it is called here
	asks     bool   // it is a question: that it is over is an answer too
	stream   wire.GatewayService_RouteAgentCallingClient
	cancel   context.CancelFunc
	over     atomic.Bool // it was given up here
	began    bool        // a streamed answer has: for who hears it alone
}

// say says one message of the session. What ends it is heard.
func (c *aipCall) say(status wire.AgentMessage_SessionStatus, content ...*wire.ContentItem) error {
	err := c.stream.Send(&wire.AgentMessage{SenderId: string(c.from), ReceiverId: string(c.to), SessionId: c.session, SessionStatus: status, Content: content})
	if err != nil && !errors.Is(err, io.EOF) {
		return aipError(err)
	}
	return nil
}

// Say is that of a [Party]. Who it says it is counts, as its credentials are for several.
func (p *aipParty) Say(_ context.Context, w Word) error {
	switch {
	case w.Kind == agora.Reply:
		return p.replies(w)
	case w.Part == agora.Cancel:
		p.givesUp(w)
		return nil
	case w.Part <= agora.Start:
		return p.opens(w)
	}
	p.mu.Lock()
	c := p.calls[w.Stream]
	p.mu.Unlock()
	switch {
	case c == nil:
		return agora.Errorf(agora.StreamNotFound, "there is no session %q", w.Stream)
	case w.Part == agora.Chunk:
		return c.say(wire.AgentMessage_HOLD_QUEST, aipText(w.Body))
	}
	return c.ends()
}

func (c *aipCall) ends() error {
	if err := c.say(wire.AgentMessage_STOP_QUEST); err != nil {
		return err
	}
	return c.stream.CloseSend()
}

// opens calls an agent. The same name again is another session.
func (p *aipParty) opens(w Word) error {
	p.mu.Lock()
	p.named++
	c := &aipCall{from: p.seat.ID, to: w.Peer, name: cmp.Or(w.Stream, w.Request), asks: w.Request != "", session: fmt.Sprint(cmp.Or(w.Stream, w.Request, "m"), "~", p.named)}
	p.calls[c.name] = c
	p.mu.Unlock()
	ctx, cancel := context.WithCancel(p.life)
	if w.Deadline > 0 {
		ctx, cancel = context.WithTimeout(p.life, w.Deadline)
	}
	c.cancel = cancel
	var err error
	if c.stream, err = p.gateway.RouteAgentCalling(ctx); err != nil {
		cancel()
		return aipError(err)
	}
	p.work.Go(func() { p.hears(c) })
	if err := c.say(wire.AgentMessage_START_QUEST, aipContent(w.Body)...); err != nil || w.Part == agora.Start {
		return err
	}
	return c.ends()
}

// givesUp cancels a session: its own, or one with it.
func (p *aipParty) givesUp(w Word) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if s := p.served[w.Stream]; s != nil {
		s.end(errAIPCancelled)
		return
	}
	if c := p.calls[cmp.Or(w.Request, w.Stream)]; c != nil {
		c.over.Store(true)
		c.cancel()
	}
}

// hears hears what comes back of a session, until that is over. A response behind which no more comes is an end, or
// looks like one: the status says which.
func (p *aipParty) hears(c *aipCall) {
	defer c.cancel()
	var last *wire.AgentMessage
	for {
		p.passes()
		m, err := c.stream.Recv()
		switch {
		case err == nil && m.GetSessionStatus() == wire.AgentMessage_STOP_RESPONSE:
			last = m
		case err == nil:
			for _, i := range m.GetContent() {
				c.began = true
				p.Put(c.word(agora.Chunk, []byte(i.GetText())))
			}
		case errors.Is(err, io.EOF):
			p.answered(c, last)
			return
		default:
			if !c.over.Load() && p.life.Err() == nil {
				w := c.word(agora.Abort, nil)
				w.Code = aipCode(err, c.began)
				p.Put(w)
			}
			return
		}
	}
}

// answered hears the last of an answer. That a session is over which asked nothing is no news.
func (p *aipParty) answered(c *aipCall, last *wire.AgentMessage) {
	body := aipBody(last.GetContent())
	switch {
	case c.began:
		p.Put(c.word(agora.End, body))
	case c.asks || body != nil:
		w := c.word(agora.Whole, body)
		w.Stream = ""
		p.Put(w)
	}
}

// word is what is heard of the session's answer.
func (c *aipCall) word(part agora.Part, body []byte) Word {
	return Word{Kind: agora.Reply, Part: part, Peer: c.to, Stream: c.name, Request: c.name, Body: body}
}
