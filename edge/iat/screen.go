package iat

import (
	"cmp"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"time"

	"github.com/agora-relay/agora"
	"github.com/agora-relay/agora/edge"
	"github.com/agora-relay/agora/wire"
	"github.com/agora-relay/agora/wire/iat"
)

// screen holds what agents of other dialects say to those of this one to the rules of an envelope, where it gives a task or calls a tool: there it is a request like any, and
// nobody could tell it from one that was checked.
func (d *Door) screen(ctx context.Context, by *edge.Actor, m *agora.Message) error {
	if m.Meta.Dialect == iat.Dialect {
		return nil // was checked as it came
	}
	action, err := iat.Guarded(m.Body)
	if action == "" && err == nil {
		return nil
	}
	callee, failed := known(by.Directory().Addressee(ctx, m.To.Agent))
	if failed != nil || callee.DialectName() != iat.Dialect {
		return failed
	}
	if err != nil {
		return err
	}
	e := iat.Envelope{
		ID: cmp.Or(m.Meta.Request, wire.RequestIDOf(m.Body)), Parent: m.Meta.Parent, Type: iat.Request, From: string(m.From), To: string(m.To.Agent), Stream: m.Part == agora.Start,
		Action: action, Payload: m.Body,
	}
	if e.ID == "" && action == iat.ActionExecute { // its answer names it, and so does who calls a tool in its name
		e.ID = nameOf(m)
		m.Meta.Request = e.ID
	}
	if !m.Meta.Deadline.IsZero() {
		e.Deadline = max(m.Meta.Deadline.Sub(d.now()), time.Millisecond)
	}
	if err := iat.CheckAction(&e); err != nil {
		return err
	}
	return (&saying{door: d, actor: by, as: m.From}).mayAsk(ctx, &e)
}

// nameOf returns a name for a request that has none: the same when it is said again, where it can be told that it is.
func nameOf(m *agora.Message) string {
	if m.ID == "" {
		return "agora-" + rand.Text()[:16]
	}
	h := sha256.Sum256([]byte(m.ID))
	return "agora-" + hex.EncodeToString(h[:8])
}
