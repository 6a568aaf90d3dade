package simlog

import (
	"bytes"
	"strings"
	"time"
)

// leaves decides what becomes of a client's frame: what is returned goes to the server.
func (l *Log) leaves(d *line, f *frame) []byte {
	switch f.op {
	case "SUB":
		d.subscribed(f)
	case "UNSUB":
		d.unsubscribed(f)
	}
	if f.op != "PUB" && f.op != "HPUB" {
		return f.raw
	}
	kind := kindOf(f.subject)
	if kind == "" {
		return f.raw
	}
	l.Faults.mu.Lock()
	defer l.Faults.mu.Unlock()
	api := strings.HasPrefix(f.subject, apiPrefix)
	switch l.leaders[kind] {
	case Silent:
		return nil
	case Absent:
		d.answer(f.reply, absent)
		return nil
	case Dying:
		if api || l.dice.IntN(2) == 0 {
			return nil
		}
		return mute(f)
	}
	switch {
	case strings.HasPrefix(f.subject, directPrefix):
		return l.askReplica(d, f, kind)
	case api:
		return f.raw
	}
	return l.stores(d, f, kind)
}

// stores decides what becomes of a record. The lock of Faults is held.
func (l *Log) stores(d *line, f *frame, kind string) []byte {
	switch {
	case l.full[kind]:
		d.answer(f.reply, noRoom)
		return nil
	case l.refusing > 0 && l.dice.IntN(100) < l.refusing && f.value(expectedLast) != "":
		d.answer(f.reply, refusals[l.dice.IntN(len(refusals))])
		return nil
	}
	id := f.value("Nats-Msg-Id")
	if l.window == 0 || id == "" {
		return f.raw
	}
	key, now := streamOf(f.subject)+" "+id, time.Now()
	if sent, stored := l.ids[key]; stored && now.Sub(sent) < l.window-idMargin {
		return bytes.ReplaceAll(f.raw, []byte("\r\n"+expectedLast), []byte("\r\n"+hidden(expectedLast)))
	}
	if f.reply != "" {
		d.sent(f.reply, record{key, now})
	}
	return f.raw
}

const (
	expectedLast = "Nats-Expected-Last-Subject-Sequence" // and what that begins
	idMargin     = time.Second                           // for which ids are not relied on before the server forgets them
)

// hidden is a name, as long as another, that means nothing to the server.
func hidden(name string) string { return "X" + name[1:] }

// arrives decides what becomes of a server's frame.
func (l *Log) arrives(d *line, f *frame) {
	if f.op != "MSG" && f.op != "HMSG" {
		d.pass(f.raw)
		return
	}
	if strings.HasPrefix(f.subject, livePrefix) {
		l.arrivesLive(d, f)
		return
	}
	if r, ok := d.answered(f.subject); ok && isStored(f.body) {
		l.Faults.set(func() { l.ids[r.key] = r.at })
	}
	d.pass(f.raw)
}

// isStored reports whether an answer says that a record was stored now.
func isStored(body []byte) bool {
	return bytes.Contains(body, []byte(`"seq":`)) && !bytes.Contains(body, []byte(`"error":`)) && !bytes.Contains(body, []byte(`"duplicate":`))
}

func (l *Log) arrivesLive(d *line, f *frame) {
	l.Faults.mu.Lock()
	lost, late := f.header != nil && l.losing > 0 && l.dice.IntN(100) < l.losing, l.late
	if words := strings.Split(f.subject, "."); len(words) > 3 {
		lost = lost || l.leaders[words[3]] == Dying
	}
	l.Faults.mu.Unlock()
	if !lost {
		d.live(f.raw, late)
	}
}

// mute returns a publish without the place where its answer is wanted: it is stored, and nobody is told.
func mute(f *frame) []byte {
	if f.reply == "" {
		return f.raw
	}
	end := bytes.Index(f.raw, newline)
	words := bytes.Fields(f.raw[:end])
	first := bytes.Join(append(words[:2:2], words[3:]...), []byte(" "))
	return append(first, f.raw[end:]...)
}
