package agoratest

import (
	"slices"
	"strings"
	"time"
)

// handle takes a frame.
func (k *talker) handle(frame Frame) {
	f := frame.fields()
	k.mu.Lock()
	defer k.mu.Unlock()
	switch f.Type() {
	case "space.joined":
		k.space = max(k.space, f.Seq())
	case "receipt":
		o := k.lane(f.Text("to"))
		o.stored = max(o.stored, f.Uint("n"))
		o.skip()
		return
	case "error":
		k.refused(frame)
	case "agent.reconnect":
		k.seen.Codes["agent.reconnect"]++
	case "gap":
		k.fault("was told of a gap: %s", frame)
	case "message", "message_chunk", "message_end", "reply":
		if f.Has("n") {
			k.got(f, f.Text("from"))
		} else {
			k.gotPlain(f)
		}
	case "space.event", "space.event.delta", "space.event.done":
		k.event(f)
	}
	if strings.HasPrefix(f.Type(), "space.") {
		k.space = max(k.space, f.Seq())
	} else {
		k.last = max(k.last, f.Seq())
	}
}

// got accounts for a numbered frame.
func (k *talker) got(f fields, from string) {
	n, in := f.Uint("n"), k.from(from)
	switch {
	case n <= in.last && f.Raw("redelivered") == "true":
		return
	case n <= in.last:
		k.fault("got number %d of %s again, after %d: %.300s", n, from, in.last, f)
		return
	}
	for gone := in.last + 1; gone < n; gone++ {
		in.holes = append(in.holes, gone)
	}
	if want := kinds[(n-1)%streak]; !strings.HasPrefix(from, "#") && f.Type() != want {
		k.fault("got number %d of %s as %s, want %s", n, from, f.Type(), want)
	}
	if !strings.HasPrefix(from, "#") && inStream(n) && in.aborted[streamOf(n)] {
		k.fault("got number %d of %s though its stream was given up", n, from)
	}
	k.inTime(f)
	now := time.Now()
	if in.last > 0 {
		in.pause = max(in.pause, now.Sub(in.at))
	}
	in.last, in.at = n, now
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

// gotPlain accounts for a message without a number of its own: such are sent once, whatever comes of it.
// They may be lost with the connection that they were written to, but come in order and never twice.
func (k *talker) gotPlain(f fields) {
	in, n := k.from(f.Text("from")), Frame(f.Raw("payload")).Uint("plain")
	if n <= in.plain && f.Raw("redelivered") != "true" {
		k.fault("got plain message %d of %s after %d: %.300s", n, f.Text("from"), in.plain, f)
	}
	in.plain = max(in.plain, n)
}

// event accounts for an event, or a part of one: its last part has the number.
func (k *talker) event(f fields) {
	event, data := f.Text("event_id"), Frame(f.Raw("data")).fields()
	switch f.Type() {
	case "space.event":
		k.got(f, "#"+data.Text("from"))
	case "space.event.delta":
		if from := data.Text("from"); from != "" {
			k.texts[event] = 0
			k.texts[event+"/from"] = slices.Index(k.talk.ids, from)
		}
		k.texts[event] += len(data.Text("text"))
	case "space.event.done":
		if k.texts[event] != large {
			k.fault("got %d bytes of event %s, want %d", k.texts[event], event, large)
		}
		if from := k.texts[event+"/from"]; from >= 0 {
			k.got(f, "#"+k.talk.ids[from])
		}
		delete(k.texts, event)
		delete(k.texts, event+"/from")
	}
}
