package iat

import (
	"context"
	"errors"
	"net/http"
	"time"

	"github.com/agora-relay/agora"
	"github.com/agora-relay/agora/edge"
	"github.com/agora-relay/agora/edge/web"
	"github.com/agora-relay/agora/wire/iat"
)

// bodies are the media types of an envelope. curl says the second where nothing else was said.
var bodies = []string{media, "application/x-www-form-urlencoded"}

// read reads the envelope that a request posts: as large as one on a WebSocket may be.
func (d *Door) read(x *web.Exchange) (*iat.Envelope, error) {
	b, err := x.BodyUpTo(d.cfg.Frame, bodies...)
	if err != nil {
		return nil, err
	}
	e := new(iat.Envelope)
	if err := iat.Decode(b, e, d.cfg.Limits); err != nil {
		return nil, err
	}
	return e, nil
}

// head finds the token of an envelope while that comes.
type head struct{ *Door }

// Scan implements web.Head.
func (head) Scan() web.Scanner { return new(iat.TokenScan) }

// Read implements web.Head: should the envelope be refused, fault finds whose it was.
func (h head) Read(x *web.Exchange, b []byte, whole bool) error {
	e := new(iat.Envelope)
	err := iat.Decode(b, e, h.cfg.Limits)
	if f, broken := errors.AsType[*iat.Fault](err); broken {
		e.ID, e.From = f.ID, f.From
	}
	x.Request = x.Request.WithContext(context.WithValue(x.Request.Context(), envelopeKey{}, e))
	if !whole {
		return nil // it is no envelope yet
	}
	return err
}

// envelopeKey is the key of the envelope in the context of the request that posts it.
type envelopeKey struct{}

// tokenInURL is for who opens a downlink, where a page can set no header: neither for a WebSocket nor for an
// EventSource.
func tokenInURL(x *web.Exchange) (string, error) {
	q, err := x.Query()
	if len(q["token"]) > 1 {
		return "", agora.Errorf(agora.InvalidRequest, "parameter token stands twice")
	}
	return q.Get("token"), err
}

// post takes an envelope.
func (d *Door) post(x *web.Exchange) error {
	begun, took := time.Now(), &d.stats.Told
	d.stats.Posts.Add(1)
	d.stats.Moved.Add(1)
	e, err := d.read(x)
	if err != nil {
		return err
	}
	if e.Type == iat.Request {
		took = &d.stats.Asked
	}
	defer func() { took.Observe(time.Since(begun)) }()
	if err := iat.CheckAction(e); err != nil {
		return err
	}
	as, err := speaker(x.Actor, e)
	if err != nil {
		return about(e, "", err)
	}
	return about(e, as, d.posted(x, e, as))
}

// posted does what an envelope says as an agent.
func (d *Door) posted(x *web.Exchange, e *iat.Envelope, as agora.AgentID) error {
	s := saying{door: d, actor: x.Actor, as: as, trace: x.Request.Header.Get("Traceparent"), proves: true}
	ctx := x.Context()
	if e.Action == iat.ActionRegister {
		return d.register(x, e, as)
	}
	if e.Type == iat.Request && !e.Stream {
		if err := mayAsk(e); err != nil {
			return err
		}
		if e.Action == iat.ActionApproval {
			return d.requireApproval(x, e, &s)
		}
		return d.request(x, e, &s)
	}
	if e.Type == iat.Chunk {
		d.stats.Chunks.Add(1)
	}
	if err := s.tell(ctx, e); err != nil {
		return err
	}
	return x.Answer(http.StatusAccepted, nil)
}

// speaker returns the agent as which an envelope is said that no connection is bound for: the only one that the
// principal may be, else the one that the envelope names.
func speaker(a *edge.Actor, e *iat.Envelope) (agora.AgentID, error) {
	if id, only := a.Principal().Sole(); only {
		return id, nil
	}
	if e.From == "" && e.Action == iat.ActionRegister {
		if r, err := e.Registration(); err == nil && r.Agent != "" {
			return agora.ParseOwnID(string(r.Agent))
		}
	}
	if e.From == "" {
		return "", &iat.Fault{Err: agora.Errorf(agora.InvalidRequest, "header.from is missing"), Path: "/header/from", ID: e.ID}
	}
	id, err := agora.ParseOwnID(e.From)
	if err != nil {
		return "", &iat.Fault{Err: agora.AsError(err), Path: "/header/from", ID: e.ID}
	}
	return id, nil
}
