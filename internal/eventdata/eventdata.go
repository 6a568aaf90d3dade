// Package eventdata makes the data of what is published into that of the events which members of a space get: signed,
// stamped, and cut into deltas. It changes a JSON object without decoding it. No I/O, no clock.
package eventdata

import (
	"bytes"
	"encoding/json"
	"strconv"

	"github.com/agora-relay/agora"
	"github.com/agora-relay/agora/internal/rawjson"
)

// maxDepth bounds the nesting of data here; the door has bounded it before.
const maxDepth = 1024

// Sign returns the data of a space.publish as members get it (Agora
// spaces, space.publish): `from` exactly once, as the bound id, however often
// or escaped it was written, in the place where it first stood, or first when
// it was absent; `timestamp` in Unix seconds, last, when it was missing;
// everything else byte for byte. Data that is no JSON object is
// INVALID_REQUEST. The answer is a copy.
func Sign(data json.RawMessage, from agora.AgentID, now int64) (json.RawMessage, error) {
	m, err := inspect(data)
	if err != nil {
		return nil, err
	}
	out := make([]byte, 0, len(data)+len(from)+40)
	rest := m.open
	if len(m.from) == 0 {
		out = rawjson.AppendString(append(append(out, data[:m.open]...), `"from":`...), string(from))
		if m.last > m.open {
			out = append(out, ',')
		}
	} else {
		out, rest = m.sign(out, data, from)
	}
	out = append(out, data[rest:m.last]...)
	if !m.stamped {
		out = strconv.AppendInt(append(out, `,"timestamp":`...), now, 10)
	}
	return append(out, data[m.last:]...), nil
}

// SignDelta returns the data of a space.publish.delta as members get it: it
// must have a string `text`, once; `from`, where the client wrote it, becomes
// the bound id, once; everything else stays byte for byte. The answer is a copy.
func SignDelta(data json.RawMessage, from agora.AgentID) (json.RawMessage, error) {
	if _, _, what := Text(data, maxDepth); what != "" {
		return nil, agora.Errorf(agora.InvalidRequest, "data %s", what)
	}
	m, err := inspect(data)
	if err != nil {
		return nil, err
	}
	out, rest := m.sign(make([]byte, 0, len(data)+len(from)), data, from)
	return append(out, data[rest:]...), nil
}

// marks are the places in data that publishing looks at.
type marks struct {
	open    int      // behind the opening brace
	from    []member // every one of that name
	last    int      // behind the last member, or open
	stamped bool     // there is a timestamp
}

// member is where one member stands.
type member struct {
	before   int // where what precedes its comma ends
	key      int // its opening quote
	colon    int // behind its key
	val, end int
}

// inspect finds the marks, and refuses what is no JSON object.
func inspect(data []byte) (m marks, err error) {
	if at := rawjson.BadUTF8(data); at >= 0 {
		return m, agora.Errorf(agora.InvalidRequest, "data is not valid UTF-8 at byte %d", at)
	}
	o := rawjson.NewObject(data, maxDepth)
	m.open = bytes.IndexByte(data, '{') + 1
	m.last = m.open
	for o.Next() {
		switch string(o.Name()) {
		case "from":
			m.from = append(m.from, member{o.Before, o.KeyAt, o.KeyAt + len(o.Key) + 2, o.ValAt, o.Pos()})
		case "timestamp":
			m.stamped = true
		}
		m.last = o.Pos()
	}
	if !o.End() {
		what, at := o.Fault()
		return m, agora.Errorf(agora.InvalidRequest, "data is not a JSON object: %s, at byte %d", what, at)
	}
	return m, nil
}

// sign appends data up to the last member called from: the first of them as
// the bound id, without the others. It returns where the rest of data begins.
func (m *marks) sign(out, data []byte, from agora.AgentID) ([]byte, int) {
	rest := 0
	for i, f := range m.from {
		if i == 0 {
			out = append(append(out, data[:f.key]...), `"from"`...)
			out = rawjson.AppendString(append(out, data[f.colon:f.val]...), string(from))
		} else {
			out = append(out, data[rest:f.before]...)
		}
		rest = f.end
	}
	return out, rest
}

// Text returns where the value of the one string `text` of data stands, which may be nested that deep, and what is
// wrong with it.
func Text(data []byte, depth int) (from, to int, what string) {
	o := rawjson.NewObject(data, depth)
	for o.Next() {
		if string(o.Name()) != "text" {
			continue
		}
		if to != 0 {
			return from, to, `has "text" twice`
		}
		if o.Val[0] != '"' {
			return from, to, `has a "text" that is no string`
		}
		from, to = o.ValAt, o.Pos()
	}
	switch {
	case !o.End():
		return from, to, "is not a JSON object"
	case to == 0:
		return from, to, `has no "text"`
	}
	return from, to, ""
}
