package party

import (
	"encoding/json"
	"fmt"
	"net/http"
	"sync"
	"time"

	"github.com/agora-relay/agora"
	"github.com/agora-relay/agora/edge/carrier"
	"github.com/agora-relay/agora/edge/iat"
	"github.com/agora-relay/agora/edge/tools"
	"github.com/agora-relay/agora/edge/web"
	"github.com/agora-relay/agora/internal/agoratest"
	wire "github.com/agora-relay/agora/wire/iat"
)

// IAT is the IAT door: parties POST what they say, and hear it by a downlink of events. Nothing tells that one leaves:
// it is lost.
func IAT() Door {
	return Door{
		Name: "iat", Dialect: wire.Dialect, TooMuch: 1 << 20, Open: openIAT, Enter: enterIAT, // bytes: of a body
		Can: Sends | Asks | Answers | Pours | Pieces | Streams | Cancels | Deadlines | Waits | Moves | Stalls | Anything | Bounded | Mails,
	}
}

// IATSocket is the same door by WebSocket, both ways.
func IATSocket() Door {
	return Door{
		Name: "iat-ws", Opens: "iat", Dialect: wire.Dialect, TooMuch: 1 << 20, Open: openIAT, Enter: enterIATSocket, // bytes: limits.frame
		Can: Enters | Sends | Asks | Answers | Pours | Pieces | Streams | Cancels | Deadlines | Waits | Moves | Stalls | Exact | Anything | Bounded | Mails,
	}
}

// iatOpened is the door at one edge, with what it is made with.
type iatOpened struct {
	*web.Kit
	door *iat.Door
}

// Wait returns when nothing of both runs.
func (o iatOpened) Wait() {
	o.Kit.Wait()
	o.door.Wait()
}

func openIAT(e agoratest.Entry) (agoratest.Opened, error) {
	k := web.New(e.Node, web.Config{})
	c := e.Node.Config()
	g := tools.NewGuard(tools.GuardConfig{Presence: c.Presence, Now: c.Broker.Now, Root: wire.RootOf})
	e.Node.Screens(carrier.New(g).Screen)
	d := iat.New(e.Node, k, iat.Config{Approvals: c.Approvals, Tools: g, MaxWait: 2 * time.Hour})
	d.Mount(e.Mux)
	return iatOpened{k, d}, nil
}

// iatParty is an agent of the IAT dialect, however it is connected.
type iatParty struct {
	*Ear
	Unable
	seat  Seat
	http  *http.Client
	work  sync.WaitGroup
	named int // envelopes without a name of their own

	mu      sync.Mutex            // guards the fields below
	last    string                // position that was heard
	token   string                // with which the downlink is taken over
	streams map[string]*iatStream // its own streams, by their names here and by the ids of the envelopes that opened them
	asks    map[string]*iatAsk    // its own requests
	over    map[string]bool       // parents that nothing is said of any more
	opened  int                   // streams so far
}

// iatStream is a stream of its own.
type iatStream struct {
	name, id string // here, and of the envelope that opened it
	to       agora.AgentID
}

// iatAsk is a request of its own.
type iatAsk struct {
	to    agora.AgentID
	began bool // a chunk of the answer has come
	ended bool // it was given up: that its answer is, is no news
}

func newIATParty(seat Seat) *iatParty {
	return &iatParty{
		Ear: NewEar(), seat: seat, http: &http.Client{Transport: &http.Transport{}}, streams: map[string]*iatStream{}, asks: map[string]*iatAsk{}, over: map[string]bool{},
	}
}

// iatEnvelope is an envelope as the adapter writes and reads it.
type iatEnvelope struct {
	Header struct {
		ID     string        `json:"msg_id"`
		Parent string        `json:"parent_id,omitempty"`
		Type   string        `json:"type"`
		From   agora.AgentID `json:"from,omitempty"`
		To     agora.AgentID `json:"to,omitempty"`
	} `json:"header"`
	Metadata struct {
		Stream   bool  `json:"stream,omitempty"`
		Deadline int64 `json:"deadline_ms,omitempty"`
	} `json:"metadata"`
	Payload json.RawMessage `json:"payload,omitempty"`
	Seq     uint64          `json:"seq,omitempty"`
}

// envelope returns a word as an envelope. The same word said again is the same envelope.
func (p *iatParty) envelope(w Word) (e iatEnvelope) {
	h := &e.Header
	h.From, h.To, e.Payload = p.seat.ID, w.Peer, w.Body
	if w.As != "" {
		h.From = w.As
	}
	e.Metadata.Deadline = w.Deadline.Milliseconds()
	switch id := p.idOf(w.Stream); {
	case w.Kind == agora.Reply && w.Part != agora.Whole && w.Part != agora.Cancel:
		h.Type, h.Parent, e.Payload = "chunk", w.Request, text(string(w.Body))
		if w.Part == agora.End {
			h.Type, e.Payload = "response", json.RawMessage(`{}`)
		}
	case w.Part == agora.Cancel:
		h.Type, h.Parent, e.Payload = "notification", id, json.RawMessage(`{"action":"cancel"}`)
	case w.Part == agora.Chunk:
		h.Type, h.Parent, e.Payload = "chunk", id, text(string(w.Body))
	case w.Part == agora.End:
		h.Type, h.Parent, e.Payload = "notification", id, json.RawMessage(`{"action":"stream_end"}`)
	case w.Kind == agora.Reply:
		h.Type, h.Parent = "response", w.Request
	case w.Part == agora.Start:
		h.Type, h.ID, e.Metadata.Stream = "request", id, true
	case w.Request != "":
		h.Type, h.ID = "request", w.Request
	default:
		h.Type = "notification"
	}
	if h.ID == "" {
		h.ID = fmt.Sprintf("%s-%d", p.seat.ID, p.named)
	}
	return e
}

// idOf returns what envelopes call a stream.
func (p *iatParty) idOf(name string) string {
	p.mu.Lock()
	defer p.mu.Unlock()
	if st := p.streams[name]; st != nil {
		return st.id
	}
	return name
}

// note keeps in mind what a word opens or asks. A stream that is begun again is another one.
func (p *iatParty) note(w Word) {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch ask := p.asks[w.Request]; {
	case w.Part == agora.Cancel:
		p.over[w.Stream] = true
		if st := p.streams[w.Stream]; st != nil {
			p.over[st.id] = true
		}
		if ask != nil {
			ask.ended = true
		}
	case w.Kind != agora.Request:
	case w.Part == agora.Start && (p.streams[w.Stream] == nil || p.named != p.opened):
		p.opened = p.named
		st := &iatStream{w.Stream, fmt.Sprintf("%s~%s~%d", w.Stream, p.seat.ID, p.named), w.Peer}
		p.streams[st.name], p.streams[st.id] = st, st
	case w.Part == agora.Whole && w.Request != "":
		p.asks[w.Request] = &iatAsk{to: w.Peer}
	}
}

// said counts a word that the edge has taken or refused: the next one is another envelope.
func (p *iatParty) said() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.named++
}

// word says an envelope in words of the suite; false for one that is none.
func (p *iatParty) word(b []byte) (w Word, ok bool) {
	var e iatEnvelope
	var said struct {
		Action string
		Text   string
		Code   agora.Code
		Error  struct{ Code agora.Code }
	}
	if json.Unmarshal(b, &e) != nil {
		return w, false
	}
	_ = json.Unmarshal(e.Payload, &said) // no object: it says nothing of the kind
	h := &e.Header
	w = Word{Peer: h.From, Body: e.Payload, Deadline: time.Duration(e.Metadata.Deadline) * time.Millisecond}
	p.mu.Lock()
	defer p.mu.Unlock()
	parent := h.Parent
	own, ask := p.streams[parent], p.asks[parent]
	if own != nil {
		parent = own.name
	}
	defer func() {
		if w.Part >= agora.Cancel {
			p.over[h.Parent] = true
		}
	}()
	switch {
	case said.Error.Code != "" && ask != nil && ask.ended:
		return w, false
	case said.Error.Code != "":
		w.Kind, w.Part, w.Stream, w.Request, w.Code, w.Body = agora.Reply, agora.Abort, parent, parent, said.Error.Code, nil
		if own != nil && h.From == agora.Cluster {
			w.Peer = own.to
		} else if ask != nil && h.From == agora.Cluster {
			w.Peer = ask.to
		}
	case h.Type == "notification" && (said.Action == "receipt" || said.Action == "reconnect" || said.Action == "gap"):
		return w, false
	case said.Action == "cancel" && said.Code != "", said.Action == "stream_aborted":
		w.Part, w.Stream, w.Request, w.Code = agora.Abort, parent, parent, said.Code
	case said.Action == "cancel":
		w.Kind, w.Part, w.Stream = agora.Control, agora.Cancel, parent
	case said.Action == "stream_end":
		w.Part, w.Stream = agora.End, h.Parent
	case h.Type == "chunk":
		w.Part, w.Stream, w.Body = agora.Chunk, h.Parent, []byte(said.Text)
		if ask != nil {
			w.Kind, w.Request, ask.began = agora.Reply, h.Parent, true
		}
	case h.Type == "response":
		w.Kind, w.Request = agora.Reply, h.Parent
		if ask != nil && ask.began {
			w.Part, w.Stream = agora.End, h.Parent
		}
	case h.Type == "request":
		w.Request, w.Stream = h.ID, h.ID // which may be followed by chunks
		if e.Metadata.Stream {
			w.Part = agora.Start
		}
	}
	return w, true
}
