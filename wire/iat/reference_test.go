package iat

import (
	"bytes"
	"encoding/json"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/agora-relay/agora"
	"github.com/agora-relay/agora/wire"
)

// What follows decides of envelopes as Decode does, by encoding/json and without care for speed.

// ref is an object as encoding/json reads it, with its keys in order.
type ref struct {
	keys   []string
	values map[string]json.RawMessage
	twice  map[string]bool
	half   bool // a key has half a surrogate pair
}

// reference reads an object slowly; nil where it is none.
func reference(raw []byte) *ref {
	d := json.NewDecoder(bytes.NewReader(raw))
	if t, err := d.Token(); err != nil || t != json.Delim('{') {
		return nil
	}
	r := &ref{values: map[string]json.RawMessage{}, twice: map[string]bool{}}
	for d.More() {
		at := d.InputOffset()
		token, err := d.Token()
		if err != nil {
			return nil
		}
		key := token.(string)
		r.half = r.half || refHalf(raw[at:d.InputOffset()])
		var v json.RawMessage
		if d.Decode(&v) != nil {
			return nil
		}
		if _, twice := r.values[key]; twice {
			r.twice[key] = true
		}
		r.keys, r.values[key] = append(r.keys, key), v
	}
	return r
}

// refHalf reports half a surrogate pair in raw JSON text: it becomes U+FFFD, which the odd values do not have.
func refHalf(raw []byte) bool {
	i, j := bytes.IndexByte(raw, '"'), bytes.LastIndexByte(raw, '"')
	if i < 0 || i == j {
		return false
	}
	var s string
	return json.Unmarshal(raw[i:j+1], &s) == nil && strings.ContainsRune(s, utf8.RuneError)
}

// refString reads a member that is a string, or null; ok=false where it is something else, or is too long.
func (r *ref) refString(key string, most int) (s string, ok bool) {
	raw, there := r.values[key]
	if !there || string(raw) == "null" {
		return "", true
	}
	if json.Unmarshal(raw, &s) != nil || strings.ContainsRune(s, utf8.RuneError) {
		return "", false
	}
	return s, utf8.RuneCountInString(s) <= most
}

func (r *ref) number(key string, most uint64) (n uint64, ok bool) {
	raw, there := r.values[key]
	if !there || string(raw) == "null" {
		return 0, true
	}
	n, err := strconv.ParseUint(string(raw), 10, 64)
	return n, err == nil && n > 0 && n <= most && strconv.FormatUint(n, 10) == string(raw)
}

func (r *ref) absent(key string) bool {
	raw, there := r.values[key]
	return !there || string(raw) == "null"
}

func (r *ref) anyTwice(keys ...string) bool {
	return slices.ContainsFunc(keys, func(k string) bool { return r.twice[k] })
}

// depthOf returns how deep objects and lists of valid JSON stand in each other.
func depthOf(valid []byte) (deepest int) {
	d := json.NewDecoder(bytes.NewReader(valid))
	d.UseNumber() // a token of 1e999999999 is an error otherwise
	for depth := 0; ; {
		switch token, err := d.Token(); {
		case err != nil:
			return deepest
		case token == json.Delim('{'), token == json.Delim('['):
			depth++
			deepest = max(deepest, depth)
		case token == json.Delim('}'), token == json.Delim(']'):
			depth--
		}
	}
}

// refTakes decides of an envelope as Decode does, slowly, and returns what it must have read.
func refTakes(text []byte, depth int) (e Envelope, ok bool) {
	if !json.Valid(text) || !utf8.Valid(text) || depthOf(text) > depth {
		return e, false
	}
	top := reference(text)
	if top == nil || top.half || top.anyTwice("header", "metadata", "payload") {
		return e, false
	}
	header := reference(top.values["header"])
	if header == nil || header.half || header.anyTwice("msg_id", "parent_id", "type", "from", "to") {
		return e, false
	}
	action, ok := refAction(top.values["payload"])
	if !ok {
		return e, false
	}
	e.Action, e.Payload = action, top.values["payload"]
	return e, refHeader(header, &e) && refMetadata(top, &e)
}

func refAction(payload json.RawMessage) (action string, ok bool) {
	p := reference(payload)
	if p == nil || p.values["action"] == nil {
		return "", true
	}
	if json.Unmarshal(p.values["action"], &action) != nil {
		action = ""
	}
	return action, !p.twice["action"] && !strings.ContainsRune(action, utf8.RuneError)
}

func refHeader(h *ref, e *Envelope) bool {
	id, ok1 := h.refString("msg_id", 256)
	parent, ok2 := h.refString("parent_id", 256)
	kind, ok3 := h.refString("type", 256)
	from, ok4 := h.refString("from", 128)
	to, ok5 := h.refString("to", 128)
	e.ID, e.Parent, e.Type, e.From, e.To = id, parent, typeOf(kind), from, to
	registers := e.Action == "register" && (kind == "request" || kind == "notification")
	_, badFrom := agora.ParseAgentID(from)
	_, badTo := agora.ParseAgentID(to)
	return ok1 && ok2 && ok3 && ok4 && ok5 && id != "" && e.Type != 0 &&
		(parent != "" || kind == "request" || kind == "notification") &&
		(h.absent("from") || badFrom == nil) && (badTo == nil || to == "" && registers)
}

func refMetadata(top *ref, e *Envelope) bool {
	if top.absent("metadata") {
		return true
	}
	m := reference(top.values["metadata"])
	if m == nil || m.half || m.anyTwice("trace_id", "ttl", "auth_token", "deadline_ms", "receipts", "workspace_root", "redelivered") {
		return false
	}
	ok1 := true
	if raw := m.values["trace_id"]; len(raw) > 0 && raw[0] == '"' {
		e.Trace, ok1 = m.refString("trace_id", 256)
	}
	ttl, ok2 := m.number("ttl", 1<<53-1)
	e.TTL, e.HasTTL = ttl, !m.absent("ttl")
	_, ok3 := m.refString("auth_token", 16<<10)
	ms, ok4 := m.number("deadline_ms", 86400000)
	e.Deadline = time.Duration(ms) * time.Millisecond
	var tiers []string
	ok5 := m.absent("receipts") || json.Unmarshal(m.values["receipts"], &tiers) == nil
	for _, t := range tiers {
		tier, err := wire.ParseReceipts(t)
		ok5 = ok5 && err == nil && t != ""
		e.Receipts |= tier
	}
	return ok1 && ok2 && ok3 && ok4 && ok5
}
