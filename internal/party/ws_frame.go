package party

import (
	"fmt"
	"time"

	"github.com/agora-relay/agora"
	"github.com/agora-relay/agora/internal/agoratest"
)

// wsTypes are the frames that say something, and what they say.
var wsTypes = map[string]struct {
	kind agora.Kind
	part agora.Part
}{
	"message": {agora.Request, agora.Whole}, "message_chunk": {agora.Request, agora.Chunk}, "message_end": {agora.Request, agora.End},
	"reply": {agora.Reply, agora.Whole}, "reply_chunk": {agora.Reply, agora.Chunk}, "reply_end": {agora.Reply, agora.End},
	"cancel": {agora.Control, agora.Cancel}, "gap": {agora.Gap, agora.Whole}, "space.event": {agora.Event, agora.Whole},
}

// wsWord says a frame in words of the suite; false for one that is none.
func wsWord(f agoratest.Frame) (Word, bool) {
	typ, ok := wsTypes[f.Type()]
	w := Word{
		Kind: typ.kind, Part: typ.part, Peer: agora.AgentID(f.Text("from")), Space: f.Text("space"), Stream: f.Text("stream_id"),
		Deadline: time.Duration(f.Uint("deadline_ms")) * time.Millisecond,
	}
	switch {
	case w.Kind == agora.Event:
		w.Body = []byte(f.Raw("data"))
		w.Peer = agora.AgentID(agoratest.Frame(w.Body).Text("from"))
	case w.Part == agora.Chunk:
		w.Body = []byte(f.Text("chunk"))
	case f.Has("payload"):
		w.Body = []byte(f.Raw("payload"))
		w.Request = nameIn(w.Body)
	}
	if w.Request == "" {
		w.Request = f.Text("request_id")
	}
	if f.Raw("stream") == "true" {
		w.Part = agora.Start
	}
	return w, ok
}

// wsFrame is a word as a frame.
func wsFrame(w Word, n uint64) string {
	if w.Kind == agora.Event {
		return fmt.Sprintf(`{"type":"space.publish","n":%d,"space":%s,"data":%s}`, n, agoratest.Quote(w.Space), w.Body)
	}
	verb := map[agora.Kind]string{agora.Request: "send", agora.Reply: "reply"}[w.Kind]
	typ := map[agora.Part]string{agora.Whole: verb, agora.Start: verb, agora.Chunk: verb + "_chunk", agora.End: verb + "_end", agora.Cancel: "cancel"}[w.Part]
	f := fmt.Sprintf(`{"type":%q,"n":%d,"to":%s`, typ, n, agoratest.Quote(string(w.Peer)))
	if w.As != "" {
		f += `,"from":` + agoratest.Quote(string(w.As))
	}
	switch {
	case w.Part == agora.Cancel && w.Stream == "":
		f += `,"request_id":` + agoratest.Quote(w.Request)
	case w.Part != agora.Whole:
		f += `,"stream_id":` + agoratest.Quote(w.Stream)
	}
	switch {
	case w.Part == agora.Chunk:
		f += `,"chunk":` + agoratest.Quote(string(w.Body))
	case w.Part == agora.Start:
		f += `,"stream":true`
	}
	if b := named(w.Body, w.Request); b != nil && w.Part <= agora.Start {
		f += `,"payload":` + string(b)
	}
	if w.Deadline > 0 {
		f += fmt.Sprintf(`,"id":%s,"deadline_ms":%d`, agoratest.Quote(w.Request), w.Deadline.Milliseconds())
	}
	return f + "}"
}
