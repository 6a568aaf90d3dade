// Package wire holds the frames of Agora relay and Agora spaces: their Go
// type, the table that says what each consists of, and their conversion to and
// from agora.Message. Servers and clients use the same ones.
//
// A frame is decoded once on its way in, by a scanner that looks at the top
// level only and checks the rest as JSON; payloads are never decoded and never
// encoded again, but spliced as the bytes they came in.
package wire

import (
	"cmp"
	"unicode/utf8"

	"github.com/agora-relay/agora"
	"github.com/agora-relay/agora/internal/eventdata"
	"github.com/agora-relay/agora/internal/rawjson"
)

// DecodeRequest decodes a frame from a client: it checks it as UTF-8, as JSON
// and against the table of frames (types, required fields, kinds, lengths), and
// fills f, whose raw fields point into b. Unknown top-level fields are ignored;
// a key of the protocol that stands twice is an error, whether this frame uses
// it or not. So is half of an escaped surrogate pair in a key of the frame and
// in every string that Frame has undone; raw fields keep it. A Frame that is used again costs no allocation where its
// addressee and stream stay the same.
//
// On error, which is an INVALID_REQUEST *agora.Error that says what is wrong
// and where, f.Type and f.ID are set where they could be read and nothing
// else is, so that an error frame can carry the request's id.
func DecodeRequest(b []byte, f *Frame, l Limits) error {
	d := decoder{frame: f, limits: l.withDefaults(), shapes: table.requests, strict: true}
	return d.decode(b)
}

// DecodeAnswer decodes a frame from a server, for clients, as [DecodeRequest]
// does. It bounds no lengths, and a type that it does not know is no error:
// then only f.Type and f.ID are set.
func DecodeAnswer(b []byte, f *Frame) error {
	d := decoder{frame: f, limits: answerLimits, shapes: table.answers}
	return d.decode(b)
}

// span is where a value stands in the frame: no door takes one that is larger than an uint32 says. to is 0 when it is
// absent.
type span struct{ from, to uint32 }

// decoder decodes one frame.
type decoder struct {
	frame  *Frame
	limits Limits
	shapes map[string]*shape
	strict bool // the frame is a client's

	b     []byte
	old   kept
	spans [fieldCount]span
	dup   bool  // a field stands twice
	twice field // which, if dup
}

// kept are the strings of the frame decoded before, taken over where they are the same again.
type kept struct{ to, from, stream, space, event, session string }

func (d *decoder) decode(b []byte) error {
	f := d.frame
	d.old = kept{f.To, f.From, f.StreamID, f.Space, f.EventID, f.Session}
	*f = Frame{}
	d.b = b
	err := d.scan()
	shape, typeErr := d.identify()
	switch {
	case err != nil:
		return err
	case d.dup:
		return agora.Errorf(agora.InvalidRequest, "%s%q stands twice", d.prefix(), fields[d.twice].key)
	case typeErr != nil:
		return typeErr
	case shape == nil:
		return nil
	}
	return d.fill(shape)
}

// scan passes over the whole frame and notes where the protocol's fields stand.
func (d *decoder) scan() error {
	b := d.b
	bad := rawjson.BadUTF8(b)
	if bad >= 0 {
		b = b[:bad] // what comes before may still say which request this was
	}
	o := rawjson.NewObject(b, d.limits.Depth)
	for o.Next() {
		key, whole := o.Text()
		if !whole {
			o.FailAt(o.KeyAt, "a key "+rawjson.HalfPair)
			break
		}
		f, known := fieldOf(key)
		switch {
		case !known:
		case d.spans[f].to != 0:
			d.twice, d.dup = f, true
		default:
			d.spans[f] = span{uint32(o.ValAt), uint32(o.ValAt + len(o.Val))}
		}
	}
	switch ok := o.End(); {
	case bad >= 0:
		return agora.Errorf(agora.InvalidRequest, "frame is not valid UTF-8 at byte %d", bad)
	case !ok:
		what, at := o.Fault()
		return agora.Errorf(agora.InvalidRequest, "frame is not a JSON object: %s, at byte %d", what, at)
	}
	return nil
}

// identify sets the frame's type and id, and finds its shape: nil without an error where the type is unknown and may
// be.
func (d *decoder) identify() (*shape, error) {
	f := d.frame
	if raw := d.raw(fID); raw != nil && !(d.dup && d.twice == fID) {
		if id, what := readText(raw, "", d.limits.Name); what == "" {
			f.ID = id
		}
	}
	raw := d.raw(fType)
	switch {
	case raw == nil:
		return nil, agora.Errorf(agora.InvalidRequest, "frame has no type")
	case raw[0] != '"':
		return nil, agora.Errorf(agora.InvalidRequest, "type must be a string")
	case d.dup && d.twice == fType:
		return nil, agora.Errorf(agora.InvalidRequest, `"type" stands twice`)
	}
	if s, ok := d.shapes[string(raw[1:len(raw)-1])]; ok { // the type of nearly every frame is spelt without escapes
		f.Type = s.name
		return s, nil
	}
	name := rawjson.Unquote(raw)
	if s, ok := d.shapes[name]; ok {
		f.Type = s.name
		return s, nil
	}
	if utf8.RuneCountInString(name) <= d.limits.Name {
		f.Type = name
	}
	if d.strict {
		return nil, agora.Errorf(agora.InvalidRequest, "unknown type %.64q", name)
	}
	return nil, nil
}

// fill reads the fields of a frame whose shape is known.
func (d *decoder) fill(s *shape) error {
	if !s.hasID {
		d.frame.ID = "" // an unknown field of this frame
	}
	for _, u := range s.fields {
		raw := d.raw(u.field)
		if raw == nil || (raw[0] == 'n' && !takesNull(fields[u.field].kind)) { // null is as good as absent
			if u.required {
				return d.refuse(u.field, "is missing")
			}
			continue
		}
		if what := d.set(u.field, raw); what != "" {
			return d.refuse(u.field, what)
		}
		if kind := fields[u.field].kind; u.required && len(raw) == 2 && (kind == kAgentID || (kind == kText || kind == kPath) && d.strict) {
			return d.refuse(u.field, "is empty")
		}
	}
	return d.settle()
}

// takesNull reports whether null is a value of the kind.
func takesNull(k kind) bool { return k == kAny || k == kMaybe }

// settle checks and fills what concerns more than one field.
func (d *decoder) settle() error {
	f := d.frame
	if f.Traceparent != "" && !isTraceparent(f.Traceparent) {
		f.Traceparent = "" // as the standard says: who can't read it continues as if there were none
	}
	switch f.Type {
	case "send", "reply", "message":
		if f.Stream && f.StreamID == "" {
			return d.refuse(fStreamID, "is missing, which stream:true needs")
		}
	case "cancel":
		switch {
		case !d.strict && f.StreamID == "":
			return d.refuse(fStreamID, "is missing")
		case d.strict && named(f.StreamID)+named(f.RequestID) != 1:
			return d.refuse(fStreamID, "is missing, or request_id in its place; they can't stand together")
		}
	case "register", "registered":
		f.AgentID = f.ID
		if _, err := agora.ParseOwnID(f.ID); d.strict && err != nil {
			return d.refuse(fID, "is no agent id: "+agora.AsError(err).Message)
		}
	case "agent.register", "agent.registered":
		f.AgentID = f.Agent.ID
	case "agents.find":
		if d.strict && named(f.Skill)+named(f.Goal)+named(f.To) != 1 {
			return d.refuse(fSkill, "is missing, or one of goal and to in its place; they can't stand together")
		}
	case "space.publish.delta":
		if _, _, what := eventdata.Text(f.Data, d.limits.Depth); d.strict && what != "" {
			return d.refuse(fData, what)
		}
	}
	return nil
}

func named(s string) int {
	if s == "" {
		return 0
	}
	return 1
}

// raw returns the value of a field, nil when it is absent.
func (d *decoder) raw(f field) []byte {
	s := d.spans[f]
	if s.to == 0 {
		return nil
	}
	return d.b[s.from:s.to:s.to]
}

// refuse empties the frame but for type and id and says what is wrong with a field.
func (d *decoder) refuse(f field, what string) error {
	*d.frame = Frame{Type: d.frame.Type, ID: d.frame.ID}
	return agora.Errorf(agora.InvalidRequest, "%s%s %s", d.prefix(), fields[f].key, what)
}

// prefix begins a message with the type, where that is known.
func (d *decoder) prefix() string {
	if s := d.shapes[d.frame.Type]; s != nil {
		return s.name + ": "
	}
	return ""
}

// Subprotocol is what WebSockets of Agora may be asked for by (Sec-WebSocket-Protocol, RFC 6455 §1.9). Asking for none
// is as good.
const Subprotocol = "agora"

// Limits bound what [DecodeRequest] takes. The zero value of each means its default.
type Limits struct {
	Depth int // objects and arrays that may stand in each other, the frame itself counted; 64
	Name  int // runes of an id, a stream id, an event id, a space, a name; 256
	Count int // entries of a list inside a frame: capabilities, positions; 4096
}

func (l Limits) withDefaults() Limits {
	l.Depth = cmp.Or(l.Depth, 64)
	l.Name = cmp.Or(l.Name, 256)
	l.Count = cmp.Or(l.Count, 4096)
	return l
}

// answerLimits hardly bound what a client takes from its server; the depth
// keeps the stack small.
var answerLimits = Limits{Depth: 1024, Name: 1 << 30, Count: 1 << 30}
