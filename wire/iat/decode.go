package iat

import (
	"bytes"
	"fmt"

	"github.com/agora-relay/agora/internal/rawjson"
)

// Decode decodes an envelope from a client (IAT §2.2) in one pass: it checks it as UTF-8 and as JSON, its nesting before
// anything else walks into it, and the members that Agora reads. It fills e, which keeps nothing of what was in it before.
//
// A key that Agora reads and that stands twice in its object is refused, however it is spelt, and so is half of a surrogate
// pair in the keys of the envelope, of header and of metadata, and in every string that Envelope has undone; in payloads,
// and in members that Agora does not read, it passes. null in an optional member is as good as none.
//
// An error is a *[Fault] with the code INVALID_REQUEST; e is empty then. Decode owns nothing and does not block. An Envelope
// that is used again costs no allocation for what is as it was before.
func Decode(b []byte, e *Envelope, l Limits) error {
	d := decoder{env: e, limits: l.withDefaults(), old: kept{e.Parent, e.From, e.To, e.Trace, e.Action}}
	*e = Envelope{}
	d.scan(b)
	if d.wrong == nil {
		d.read()
	}
	if d.wrong == nil {
		return nil
	}
	*e = Envelope{}
	d.wrong.ID, d.wrong.From = d.identity()
	return d.wrong
}

// kept are strings of the envelope decoded before, taken over where they are the same again.
type kept struct{ parent, from, to, trace, action string }

// decoder decodes one envelope.
type decoder struct {
	env    *Envelope
	limits Limits
	old    kept
	wrong  *Fault // the first that was found

	values  [fieldCount][]byte // raw; nil where the member is absent
	twice   [fieldCount]bool
	headers int // how often the envelope has a header
	tops    struct{ header, metadata, payload bool }
	acted   bool // the payload has an action
}

// refuse notes what is wrong at a place, unless something was before.
func (d *decoder) refuse(path, what string) {
	if d.wrong == nil {
		d.wrong = fault(path, what)
	}
}

// scan passes over the whole envelope, and keeps the values of the fields.
func (d *decoder) scan(b []byte) {
	if len(b) == 0 {
		d.refuse("", "is empty")
		return
	}
	bad := rawjson.BadUTF8(b)
	if bad >= 0 {
		b = b[:bad] // what comes before may still say which envelope this was
	}
	o := rawjson.NewObject(b, d.limits.Depth)
	for o.NextKey() && d.top(&o) {
	}
	if ok := o.End(); bad >= 0 {
		d.wrong = fault("", fmt.Sprintf("is not valid UTF-8 at byte %d", bad))
	} else if !ok {
		what, at := o.Fault()
		d.wrong = fault("", fmt.Sprintf("is not a JSON object: %s, at byte %d", what, at))
	}
}

// top passes over the value of one member of the envelope.
func (d *decoder) top(o *rawjson.Object) bool {
	switch string(d.key(o, "")) {
	case "header":
		d.headers++
		if !d.once(&d.tops.header, "/header") {
			return o.Pass()
		}
		return d.header(o)
	case "metadata":
		if !d.once(&d.tops.metadata, "/metadata") {
			return o.Pass()
		}
		return d.metadata(o)
	case "payload":
		if !d.once(&d.tops.payload, "/payload") {
			return o.Pass()
		}
		return d.payload(o)
	}
	return o.Pass()
}

// once reports whether a member is there for the first time, and refuses it otherwise.
func (d *decoder) once(seen *bool, path string) bool {
	if *seen {
		d.refuse(path, "stands twice")
		return false
	}
	*seen = true
	return true
}

// key returns the key of a member, with its escapes undone.
func (d *decoder) key(o *rawjson.Object, path string) []byte {
	name, whole := o.Text()
	if !whole {
		d.refuse(path, "has a key that "+rawjson.HalfPair)
	}
	return name
}

// keep keeps the value of a field.
func (d *decoder) keep(f field, raw []byte) {
	if d.values[f] != nil {
		d.twice[f] = true
		d.refuse(paths[f], "stands twice")
		return
	}
	d.values[f] = raw
}

func (d *decoder) header(o *rawjson.Object) bool {
	in, ok := o.Enter()
	if !ok {
		return d.noObject(o, "/header")
	}
	s := &d.env.splice
	for in.Next() {
		f := headerField(d.key(&in, "/header"))
		if f == noField {
			continue
		}
		d.keep(f, in.Val)
		if f == fFrom {
			s.from = span{in.ValAt - o.ValAt, in.Pos() - o.ValAt}
		}
	}
	if !o.Leave(&in) {
		return false
	}
	s.header = o.Val
	return true
}

// noObject passes over a value where an object should be, or null.
func (d *decoder) noObject(o *rawjson.Object, path string) bool {
	if !o.Pass() {
		return false
	}
	if o.Val[0] != 'n' {
		d.refuse(path, "must be an object")
	}
	return true
}

func (d *decoder) metadata(o *rawjson.Object) bool {
	in, ok := o.Enter()
	if !ok {
		return d.noObject(o, "/metadata")
	}
	s := &d.env.splice
	for in.Next() {
		f := metadataField(d.key(&in, "/metadata"))
		if f != noField {
			d.keep(f, in.Val)
		}
		if f.stays() {
			s.stay(in.KeyAt - o.ValAt)
		} else if !d.twice[f] {
			s.cut(in.Before-o.ValAt, in.KeyAt-o.ValAt, in.Pos()-o.ValAt)
		}
		if f == fTTL {
			s.ttl = span{in.ValAt - o.ValAt, in.Pos() - o.ValAt}
		}
	}
	if !o.Leave(&in) {
		return false
	}
	s.metadata = o.Val
	return true
}

// payload passes over the payload, and reads its action.
func (d *decoder) payload(o *rawjson.Object) bool {
	in, ok := o.Enter()
	if !ok {
		if !o.Pass() {
			return false
		}
		d.env.Payload = o.Val
		return true
	}
	for in.Next() {
		if isKey(&in, "action") {
			d.action(in.Val)
		}
	}
	if !o.Leave(&in) {
		return false
	}
	d.env.Payload = o.Val
	return true
}

// isKey reports whether a member of a payload has that key, of ASCII.
func isKey(o *rawjson.Object, key string) bool {
	if len(o.Key) == len(key) {
		return string(o.Key) == key
	}
	return len(o.Key) > len(key) && len(o.Key) <= 6*len(key) && bytes.IndexByte(o.Key, '\\') >= 0 && string(o.Name()) == key
}

func (d *decoder) action(raw []byte) {
	const path = "/payload/action"
	if !d.once(&d.acted, path) || raw[0] != '"' {
		return
	}
	action, whole := rawjson.Text(raw, d.old.action)
	if !whole {
		d.refuse(path, rawjson.HalfPair)
		return
	}
	d.env.Action = action
}
