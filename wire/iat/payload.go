package iat

import (
	"encoding/json"
	"fmt"
	"strconv"
	"unicode/utf8"

	"github.com/agora-relay/agora/internal/rawjson"
)

// maxDepth bounds the nesting of payloads here; [Decode] has bounded it before.
const maxDepth = 1 << 10

// reader reads members of a payload, which is valid JSON. Only the first thing that is wrong counts.
type reader struct {
	payload json.RawMessage
	wrong   *Fault
	id      string
	from    string
}

// member is a member of an object that is read.
type member struct {
	key  string
	must bool // it has to be there, and be not null
	read func(path string, raw []byte)
}

func (e *Envelope) reader() *reader { return &reader{payload: e.Payload, id: e.ID, from: e.From} }

// err returns what is wrong as an error, nil where nothing is.
func (p *reader) err() error {
	if p.wrong == nil {
		return nil
	}
	p.wrong.ID, p.wrong.From = p.id, p.from
	return p.wrong
}

func (p *reader) refuse(path, what string) {
	if p.wrong == nil {
		p.wrong = fault(path, what)
	}
}

// read reads members of the payload.
func (p *reader) read(all ...member) { p.members("/payload", p.payload, all...) }

// members reads members of an object at path, in the order in which all has them.
func (p *reader) members(path string, raw []byte, all ...member) {
	if p.isObject(path, raw) == nil {
		return
	}
	values := make([][]byte, len(all))
	for o := rawjson.NewObject(raw, maxDepth); o.Next(); {
		for i, m := range all {
			if !isKey(&o, m.key) {
				continue
			}
			if values[i] != nil {
				p.refuse(path+"/"+m.key, "stands twice")
			}
			values[i] = o.Val
		}
	}
	for i, m := range all {
		switch at := path + "/" + m.key; {
		case p.wrong != nil:
			return
		case values[i] != nil && values[i][0] != 'n':
			if m.read(at, values[i]); p.wrong != nil {
				return
			}
		case m.must:
			p.refuse(at, "is missing")
		}
	}
}

// each visits the elements of a list.
func (p *reader) each(path string, raw []byte, visit func(path string, raw []byte)) {
	if raw[0] != '[' {
		p.refuse(path, "must be a list")
		return
	}
	l := rawjson.NewList(raw, maxDepth)
	for i := 0; p.wrong == nil && l.Next(); i++ {
		visit(path+"/"+strconv.Itoa(i), l.Val)
	}
}

// text reads a string that Agora reads, of at most so many runes where that is not 0.
func (p *reader) text(path string, raw []byte, most int) string {
	if raw[0] != '"' {
		p.refuse(path, "must be a string")
		return ""
	}
	if rawjson.Halved(raw) {
		p.refuse(path, rawjson.HalfPair)
		return ""
	}
	s := rawjson.Unquote(raw)
	if most > 0 && len(s) > most && utf8.RuneCountInString(s) > most {
		p.refuse(path, fmt.Sprintf("is longer than %d characters", most))
		return ""
	}
	return s
}

// isObject returns raw where it is an object, and refuses it otherwise.
func (p *reader) isObject(path string, raw []byte) json.RawMessage {
	if len(raw) == 0 || raw[0] != '{' {
		p.refuse(path, "must be an object")
		return nil
	}
	return raw
}

// passing reads a string that passes as it is, half surrogate pairs included.
func (p *reader) passing(into *string) func(path string, raw []byte) {
	return func(path string, raw []byte) {
		if raw[0] != '"' {
			p.refuse(path, "must be a string")
			return
		}
		if into != nil {
			*into = rawjson.Unquote(raw)
		}
	}
}

// string is a member that must be a string.
func (p *reader) string(key string) member { return member{key: key, must: true, read: p.passing(nil)} }

// object is a member that is an object where it is there.
func (p *reader) object(key string) member {
	return member{key: key, read: func(path string, raw []byte) { p.isObject(path, raw) }}
}
