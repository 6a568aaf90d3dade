package iat

import (
	"fmt"
	"time"
	"unicode/utf8"

	"github.com/agora-relay/agora"
	"github.com/agora-relay/agora/internal/rawjson"
	"github.com/agora-relay/agora/wire"
)

// read reads the fields that scan has kept, and checks what concerns more than one of them.
func (d *decoder) read() {
	if d.env.splice.header == nil {
		d.refuse("/header", "is missing")
		return
	}
	d.readHeader()
	d.readMetadata()
	if d.env.splice.size() > maxSplice {
		d.refuse("/header", fmt.Sprintf("and metadata are larger than %d bytes together", maxSplice))
	}
}

func (d *decoder) readHeader() {
	e := d.env
	if e.ID = d.name(fID, ""); e.ID == "" {
		d.refuse(paths[fID], d.missing(fID))
	}
	e.Type = d.kind()
	e.Parent = d.name(fParent, d.old.parent)
	if e.Parent == "" && (e.Type == Response || e.Type == Chunk) {
		d.refuse(paths[fParent], d.missing(fParent)+", which a "+e.Type.String()+" needs")
	}
	e.From = d.agent(fFrom, d.old.from)
	registers := e.Action == ActionRegister && (e.Type == Request || e.Type == Notification)
	if registers && string(d.values[fTo]) == `""` {
		return
	}
	if e.To = d.agent(fTo, d.old.to); e.To == "" && !registers {
		d.refuse(paths[fTo], d.missing(fTo))
	}
}

// missing says of a field that has no value why.
func (d *decoder) missing(f field) string {
	if string(d.values[f]) == `""` {
		return "is empty"
	}
	return "is missing"
}

func (d *decoder) readMetadata() {
	e := d.env
	if raw := d.values[fTrace]; len(raw) > 0 && raw[0] == '"' {
		e.Trace = d.name(fTrace, d.old.trace)
	}
	e.TTL, e.HasTTL = d.integer(fTTL, agora.MaxSeq)
	e.Token = bearer(d.text(fToken, "", maxToken))
	ms, _ := d.integer(fDeadline, uint64(MaxDeadline/time.Millisecond)+1)
	e.Deadline = time.Duration(ms) * time.Millisecond
	e.Receipts = d.tiers()
	e.Stream = d.opens()
}

// opens reads whether the envelope, a request, opens a stream.
func (d *decoder) opens() bool {
	raw := d.value(fStream)
	switch {
	case raw == nil:
		return false
	case raw[0] != 't' && raw[0] != 'f':
		d.refuse(paths[fStream], "must be true or false")
	case raw[0] == 't' && d.env.Type != Request:
		d.refuse(paths[fStream], "is for requests alone")
	}
	return raw[0] == 't'
}

// value returns the raw value of a field, nil where it is absent or null.
func (d *decoder) value(f field) []byte {
	if raw := d.values[f]; len(raw) > 0 && raw[0] != 'n' {
		return raw
	}
	return nil
}

// text reads a string of at most so many runes; "" where it is absent.
func (d *decoder) text(f field, old string, most int) string {
	raw := d.value(f)
	switch {
	case raw == nil:
		return ""
	case raw[0] != '"':
		d.refuse(paths[f], "must be a string")
		return ""
	}
	s, whole := rawjson.Text(raw, old)
	if !whole {
		d.refuse(paths[f], rawjson.HalfPair)
		return ""
	}
	if len(s) > most && utf8.RuneCountInString(s) > most {
		d.refuse(paths[f], fmt.Sprintf("is longer than %d characters", most))
	}
	return s
}

func (d *decoder) name(f field, old string) string { return d.text(f, old, d.limits.Name) }

// agent reads an agent id. What is as it was before has been checked before.
func (d *decoder) agent(f field, old string) string {
	if string(d.values[f]) == `""` {
		d.refuse(paths[f], "is empty")
		return ""
	}
	s := d.text(f, old, agora.MaxIDLength)
	if s == "" || s == old {
		return s
	}
	if _, err := agora.ParseAgentID(s); err != nil {
		d.refuse(paths[f], "is no agent id: "+agora.AsError(err).Message)
	}
	return s
}

func (d *decoder) kind() Type {
	for t := Request; t <= Chunk; t++ { // the type of nearly every envelope is spelt without escapes
		if raw := d.values[fType]; len(raw) == len(typeNames[t])+2 && string(raw[1:len(raw)-1]) == typeNames[t] {
			return t
		}
	}
	name := d.text(fType, "", d.limits.Name)
	if name == "" {
		d.refuse(paths[fType], d.missing(fType))
		return 0
	}
	t := typeOf(name)
	if t == 0 {
		d.refuse(paths[fType], "must be request, response, notification or chunk")
	}
	return t
}

// integer reads an integer from 1 to below the bound; false where it is absent.
func (d *decoder) integer(f field, below uint64) (uint64, bool) {
	raw := d.value(f)
	if raw == nil {
		return 0, false
	}
	n, ok := rawjson.Integer(raw, 1, below)
	if !ok {
		d.refuse(paths[f], fmt.Sprintf("must be an integer from 1 to %d", below-1))
	}
	return n, ok
}

func (d *decoder) tiers() (all agora.Receipts) {
	raw := d.value(fReceipts)
	if raw == nil {
		return 0
	}
	const what = `must be a list of "stored", "delivered" and "acked"`
	if raw[0] != '[' {
		d.refuse(paths[fReceipts], what)
		return 0
	}
	for l := rawjson.NewList(raw, d.limits.Depth); l.Next(); {
		tier := tierOf(l.Val)
		if tier == 0 {
			d.refuse(paths[fReceipts], what)
		}
		all |= tier
	}
	return all
}

// tierOf returns the tier that raw JSON names, 0 for none.
func tierOf(raw []byte) agora.Receipts {
	for _, t := range [...]agora.Receipts{agora.Stored, agora.Delivered, agora.Acked} {
		if name := wire.TierName(t); len(raw) == len(name)+2 && string(raw[1:len(raw)-1]) == name && raw[0] == '"' {
			return t
		}
	}
	return 0
}

// identity returns what can be read of msg_id and from, for an error envelope.
func (d *decoder) identity() (id, from string) {
	if d.headers > 1 {
		return "", ""
	}
	if raw := d.values[fID]; readable(raw) && !d.twice[fID] {
		if id = rawjson.Unquote(raw); utf8.RuneCountInString(id) > d.limits.Name {
			id = ""
		}
	}
	if raw := d.values[fFrom]; readable(raw) && !d.twice[fFrom] {
		if from = rawjson.Unquote(raw); from != "" {
			if _, err := agora.ParseAgentID(from); err != nil {
				from = ""
			}
		}
	}
	return id, from
}

// readable reports whether a raw value is a string that can be told again.
func readable(raw []byte) bool { return len(raw) > 0 && raw[0] == '"' && !rawjson.Halved(raw) }
