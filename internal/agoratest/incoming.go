package agoratest

import (
	"strings"
	"time"

	"github.com/agora-relay/agora/internal/loadgen/verify"
)

// handle takes a frame.
func (k *talker) handle(frame Frame) {
	f := frame.fields()
	k.mu.Lock()
	defer k.mu.Unlock()
	switch f.Type() {
	case "space.joined":
		k.pos.space = max(k.pos.space, f.Seq())
	case "receipt":
		if o := k.lane(f.Text("to")); o != nil {
			o.line.SetStored(f.Uint("n"))
		}
		return
	case "error":
		k.refused(frame)
	case "agent.reconnect":
		k.back.seen.Codes["agent.reconnect"]++
	case "gap":
		k.fault("was told of a gap: %s", frame)
	case "message", "message_chunk", "message_end", "reply":
		if f.Has("n") {
			k.got(f, f.Text("from"), verify.Kind(f.Type()))
		} else {
			k.gotPlain(f)
		}
	case "space.event", "space.event.delta", "space.event.done":
		k.event(f)
	}
	if strings.HasPrefix(f.Type(), "space.") {
		k.pos.space = max(k.pos.space, f.Seq())
	} else {
		k.pos.last = max(k.pos.last, f.Seq())
	}
}

// got takes a numbered frame.
func (k *talker) got(f fields, from string, kind verify.Kind) {
	n, in := f.Uint("n"), k.in[from]
	if in == nil {
		k.fault("got number %d of %s, who sends it nothing: %.300s", n, from, f)
		return
	}
	last := in.track.Last()
	if n <= last && f.Raw("redelivered") == "true" {
		return
	}
	if _, fresh := in.track.Arrived(kind, n, f.Seq()); !fresh {
		k.fault("got number %d of %s after %d: %.300s", n, from, last, f)
		return
	}
	k.inTime(f)
	now := time.Now()
	if last > 0 {
		in.pause = max(in.pause, now.Sub(in.at))
	}
	in.at = now
	k.caughtUp()
}

// inTime checks the time that a request has left: some of it has passed, and no more than that.
func (k *talker) inTime(f fields) {
	if !f.Has("deadline_ms") {
		return
	}
	left, most := time.Duration(f.Uint("deadline_ms"))*time.Millisecond, k.talk.opts.Deadline
	if left > most || left < most-2*patience {
		k.fault("got a request with %v left of %v", left, most)
	}
}

// gotPlain takes a message without a number of its own: such are sent once, whatever comes of it.
// They may be lost with the connection that they were written to, but come in order and never twice.
func (k *talker) gotPlain(f fields) {
	n, track := Frame(f.Raw("payload")).Uint("plain"), k.plains[f.Text("from")]
	switch {
	case track == nil:
		k.fault("got a message of %s, who sends it none without a number: %.300s", f.Text("from"), f)
	case f.Raw("redelivered") != "true" || n > track.Last():
		track.Arrived(plain, n, f.Seq())
	}
}

// event takes an event, or a part of one: its last part has the number.
func (k *talker) event(f fields) {
	id, data := f.Text("event_id"), Frame(f.Raw("data")).fields()
	switch f.Type() {
	case "space.event":
		k.got(f, "#"+data.Text("from"), event)
	case "space.event.delta":
		if from := data.Text("from"); from != "" {
			k.deltas[id] = &delta{from: from}
		}
		if d := k.deltas[id]; d != nil {
			d.size += len(data.Text("text"))
		}
	case "space.event.done":
		d := k.deltas[id]
		delete(k.deltas, id)
		if d == nil || d.size != large {
			k.fault("got event %s in deltas %+v, want %d bytes", id, d, large)
			return
		}
		k.got(f, "#"+d.from, event)
	}
}
