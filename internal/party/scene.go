package party

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"testing"

	"github.com/agora-relay/agora"
	"github.com/agora-relay/agora/internal/agoratest"
	"github.com/agora-relay/agora/internal/await"
)

// scene is what one scenario plays in: a cluster that it shares with others, and a tenant of its own.
type scene struct {
	*testing.T
	*agoratest.Cluster
	Pair
	tenant string
}

// agent is a party in a scene.
type agent struct {
	Party
	s    *scene
	id   agora.AgentID
	door Door
}

// heads reports whether the beginning of a streamed reply says something of its own where the agent is.
func (a *agent) heads() bool { return a.door.Can&Heads != 0 }

// try lets an agent enter, or be refused. name goes into its token.
func (s *scene) try(d Door, k int, id agora.AgentID, name string) (*agent, error) {
	token := s.tenant
	if name != "" {
		token += "~" + name
	}
	p, err := d.Enter(s.context(), Seat{T: s.T, Cluster: s.Cluster, Edge: k, ID: id, Token: token})
	return &agent{p, s, id, d}, err
}

// enters lets an agent enter.
func (s *scene) enters(d Door, k int, id agora.AgentID) *agent {
	s.Helper()
	a, err := s.try(d, k, id, "")
	if err != nil {
		s.Fatalf("%s can't enter by %s: %v", id, d.Name, err)
	}
	return a
}

// pair has anna at edge 0, of the sender's door, and bob at edge 1, of the receiver's.
func (s *scene) pair() (anna, bob *agent) {
	s.Helper()
	return s.enters(s.Sender, 0, "anna"), s.enters(s.Receiver, 1, "bob")
}

func (s *scene) context() context.Context { return await.Context(s.T) }

// code expects a refusal.
func (s *scene) code(what string, err error, code agora.Code) {
	s.Helper()
	if err == nil || agora.AsError(err).Code != code {
		s.Fatalf("%s: %v, want %s", what, err, code)
	}
}

// says has the agent say a word, again while the cluster can't take it.
func (a *agent) says(w Word) {
	a.s.Helper()
	var err error
	await.Within(await.Long, func() bool {
		err = a.Say(a.s.context(), w)
		e := agora.AsError(err)
		return err == nil || errors.Is(err, ErrGone) || e.Code != agora.Unavailable
	})
	if err != nil {
		a.s.Fatalf("%s says %s: %v", a.id, w, err)
	}
}

// refused has the agent say a word that is refused.
func (a *agent) refused(w Word, code agora.Code) {
	a.s.Helper()
	err := a.Say(a.s.context(), w)
	if err == nil && a.door.Can&Mails == 0 {
		a.hears(Word{Part: agora.Abort, Peer: w.Peer, Code: code})
		return
	}
	a.s.code(string(a.id)+" says "+w.String(), err, code)
}

// sends says a whole message.
func (a *agent) sends(to agora.AgentID, text string) { a.s.Helper(); a.says(plain(to, text)) }

// next hears the next word.
func (a *agent) next() Word {
	a.s.Helper()
	w, err := a.Hear(a.s.context())
	if err != nil {
		a.s.Fatalf("%s hears nothing: %v", a.id, err)
	}
	return w
}

// whole hears the next word to its end: between the live a message is a stream. Of that it has the name, and a payload
// that was too large for the beginning is in chunks.
func (a *agent) whole() Word {
	a.s.Helper()
	w := a.next()
	if !a.s.live() || w.Kind != agora.Request || w.Part != agora.Start {
		return w
	}
	for w.Part != agora.Whole {
		more := a.next()
		switch {
		case more.Kind != agora.Request || more.Peer != w.Peer || more.Stream != w.Stream:
			a.s.Fatalf("%s hears  %s\nwant more of %s", a.id, more, w)
		case more.Part == agora.Chunk:
			w.Body = append(w.Body, more.Body...)
		case more.Part == agora.End:
			w.Part = agora.Whole
		default:
			a.s.Fatalf("%s hears  %s\nwant more of %s", a.id, more, w)
		}
	}
	return w
}

// hears hears the next word, which says the same as another one: names and what is not said of it are not compared.
func (a *agent) hears(want Word) Word {
	a.s.Helper()
	var w Word
	if want.Kind == agora.Request && want.Part == agora.Whole {
		w = a.whole()
	} else {
		w = a.next()
	}
	if !w.says(want) && !(a.s.live() && w.givesUp(want)) {
		a.s.Fatalf("%s hears  %s\nwant %s", a.id, w, want)
	}
	return w
}

// gets hears a whole message, and lets go of it.
func (a *agent) gets(from agora.AgentID, text string) Word {
	a.s.Helper()
	w := a.hears(plain(from, text))
	a.letsGo(w)
	return w
}

// letsGo ends the call that a message is of which nothing is to be answered, where it is one.
func (a *agent) letsGo(w Word) {
	a.s.Helper()
	if a.door.Can&Mails == 0 {
		a.says(Word{Kind: agora.Reply, Part: agora.End, Peer: w.Peer, Request: w.Request})
	}
}

// getsAll hears whole messages, between the live in any order.
func (a *agent) getsAll(from agora.AgentID, texts ...string) {
	a.s.Helper()
	if !a.s.live() {
		for _, text := range texts {
			a.gets(from, text)
		}
		return
	}
	var heard []string
	open := map[string]Word{}
	for len(heard) < len(texts) {
		w := a.next()
		switch {
		case w.Kind == agora.Request && w.Peer == from && w.Part == agora.Start:
			open[w.Stream] = w
		case w.Kind == agora.Request && w.Peer == from && w.Part == agora.End && open[w.Stream].Stream != "":
			heard = append(heard, open[w.Stream].said())
			a.letsGo(open[w.Stream])
			delete(open, w.Stream)
		default:
			a.s.Fatalf("%s hears  %s\nwant messages of %s", a.id, w, from)
		}
	}
	slices.Sort(heard)
	if want := slices.Sorted(slices.Values(texts)); !slices.Equal(heard, want) {
		a.s.Errorf("%s hears %q, want %q", a.id, heard, want)
	}
}

// lost hears words until the connection is gone, and returns how many came before.
func (a *agent) lost(words ...Word) (heard int) {
	a.s.Helper()
	for {
		w, err := a.Hear(a.s.context())
		switch {
		case errors.Is(err, ErrGone):
			return heard
		case err != nil || heard == len(words) || !w.says(words[heard]):
			a.s.Fatalf("%s hears %s, %v; want the end of its connection", a.id, w, err)
		}
		heard++
	}
}

// returns has the agent come back at an edge.
func (a *agent) returns(k int) {
	a.s.Helper()
	if err := a.Return(a.s.context(), k); err != nil {
		a.s.Fatalf("%s can't return: %v", a.id, err)
	}
}

// silent proves that b has nothing else to hear of what a said.
func (a *agent) silent(b *agent) {
	a.s.Helper()
	a.sends(b.id, "marker")
	b.gets(a.id, "marker")
}

// flow is a stream from one agent to another.
type flow struct {
	from, to *agent
	kind     agora.Kind
	name     string // as its sender says it
	heard    string // as its receiver hears it
	asked    string // of a streamed reply the request, as its receiver named it
	answers  string // of a streamed reply the request, as its sender heard it
	silent   bool   // nothing of it was said yet: its first chunk begins it
}

// opens begins a stream.
func (a *agent) opens(b *agent, name string) *flow {
	a.s.Helper()
	return a.begins(b, Word{Stream: name})
}

// begins begins a stream or a streamed reply as a word has it.
func (a *agent) begins(b *agent, w Word) *flow {
	a.s.Helper()
	w.Part, w.Peer, w.Body = agora.Start, b.id, text("begins")
	f := &flow{from: a, to: b, kind: w.Kind, name: w.Stream, answers: w.Request}
	if w.Kind == agora.Reply && !a.heads() {
		f.silent = true
		return f
	}
	a.says(w)
	w.Peer = a.id
	if w.Kind != agora.Reply || b.heads() {
		f.named(b.hears(w))
		return f
	}
	h := b.next() // a chunk: the payload, or the text that it says
	if payload := (Word{Body: h.Body}); payload.said() == "begins" {
		h.Body = []byte("begins")
	}
	w.Part, w.Body = agora.Chunk, []byte("begins")
	if !h.says(w) {
		b.s.Fatalf("%s hears  %s\nwant %s", b.id, h, w)
	}
	f.named(h)
	return f
}

// named notes what the stream is called where it is heard.
func (f *flow) named(h Word) {
	f.from.s.Helper()
	if h.Stream == "" {
		f.from.s.Fatalf("%s hears %s, want the name of a stream", f.to.id, h)
	}
	f.heard, f.asked = h.Stream, h.Request
}

// word is a part of the stream, as it is said.
func (f *flow) word(p agora.Part, text string) Word {
	w := Word{Kind: f.kind, Part: p, Peer: f.to.id, Stream: f.name, Request: f.answers}
	if p == agora.Chunk {
		w.Body = []byte(text)
	}
	return w
}

func (f *flow) says(p agora.Part, text string) { f.from.s.Helper(); f.from.says(f.word(p, text)) }

func (f *flow) hears(p agora.Part, text string) {
	f.from.s.Helper()
	want := f.word(p, text)
	want.Peer = f.from.id
	if f.silent {
		f.silent = false
		if f.to.heads() {
			f.named(f.to.hears(Word{Kind: agora.Reply, Part: agora.Start, Peer: f.from.id}))
		} else {
			f.named(f.to.hears(want))
			return
		}
	}
	if w := f.to.hears(want); w.Stream != f.heard {
		f.from.s.Fatalf("%s hears %s of %q, want it of %q", f.to.id, w, w.Stream, f.heard)
	}
}

// goes has a chunk be said and heard.
func (f *flow) goes(text string) {
	f.from.s.Helper()
	f.says(agora.Chunk, text)
	f.hears(agora.Chunk, text)
}

// ends has the end be said and heard.
func (f *flow) ends() {
	f.from.s.Helper()
	f.says(agora.End, "")
	f.hears(agora.End, "")
}

// aborted hears, at the other end, that the stream was given up. A streamed reply may be named by its request.
func (f *flow) aborted(code agora.Code) {
	f.from.s.Helper()
	w := f.to.hears(Word{Part: agora.Abort, Peer: f.from.id, Code: code})
	if w.Stream != f.heard && (w.Request == "" || w.Request != f.asked) {
		f.from.s.Fatalf("%s hears %s of %q, want it of %q", f.to.id, w, w.Stream, f.heard)
	}
}

// text is a payload that says something.
func text(s string) []byte { return []byte(`{"text":` + agoratest.Quote(s) + `}`) }

// plain is a whole message.
func plain(peer agora.AgentID, s string) Word { return Word{Peer: peer, Body: text(s)} }

// question is a request.
func question(to agora.AgentID, name, s string) Word {
	return Word{Peer: to, Request: name, Body: text(s)}
}

// answer is the whole reply to a request that was heard.
func answer(q Word, s string) Word {
	return Word{Kind: agora.Reply, Peer: q.Peer, Request: q.Request, Body: text(s)}
}

// said returns what a word says: the text of a chunk, or of the payload's member text.
func (w Word) said() string {
	if w.Part == agora.Chunk {
		return string(w.Body)
	}
	var v struct{ Text string }
	_ = json.Unmarshal(w.Body, &v) // no object: it says nothing
	return v.Text
}

// says reports whether the word says the same as another one.
func (w Word) says(want Word) bool {
	if w.Part != want.Part || w.Peer != want.Peer || w.Space != want.Space || want.Code != "" && w.Code != want.Code {
		return false
	}
	return w.Part >= agora.Cancel || w.Kind == want.Kind && w.said() == want.said()
}

// givesUp reports whether the word says that a stream was given up as another one does, but for why. A cancel is told
// to the live as an abort is.
func (w Word) givesUp(want Word) bool {
	if want.Part < agora.Cancel || w.Part != agora.Abort || w.Peer != want.Peer {
		return false
	}
	return w.Code == "" || want.Part == agora.Cancel && w.Code == agora.StreamAborted
}

var (
	kindNames = []string{agora.Request: "request", agora.Reply: "reply", agora.Event: "event", agora.Roster: "roster", agora.Receipt: "receipt", agora.Control: "control", agora.Gap: "gap"}
	partNames = []string{agora.Whole: "whole", agora.Start: "start", agora.Chunk: "chunk", agora.End: "end", agora.Cancel: "cancel", agora.Abort: "abort"}
)

// String is the word as a failing test shows it.
func (w Word) String() string {
	s := kindNames[w.Kind] + " " + partNames[w.Part] + " " + string(w.Peer)
	for _, more := range []struct{ name, value string }{
		{"space", w.Space}, {"stream", w.Stream}, {"request", w.Request}, {"code", string(w.Code)}, {"body", string(w.Body[:min(len(w.Body), 200)])},
	} {
		if more.value != "" {
			s += " " + more.name + " " + more.value
		}
	}
	return s
}
