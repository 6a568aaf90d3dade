package simcluster

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/agora-relay/agora"
	"github.com/agora-relay/agora/edge"
)

// receive takes a frame and checks it against what came before.
func (a *agent) receive(d *door, f downward) {
	a.w.mu.Lock()
	defer a.w.mu.Unlock()
	if a.d != d {
		return // the agent has turned to another connection
	}
	switch {
	case f.refused != nil:
		a.w.note("%s is refused at %s: %v", a.id, d.e.id, f.refused)
		if agora.AsError(f.refused).Code == agora.InvalidRequest {
			a.token = "" // which was wrong
		}
	case f.welcome != nil:
		a.welcome(d, f.welcome)
	case f.notice != nil:
		a.notice(d, f.notice)
	case f.joined != nil:
		name := a.w.space.Space
		if b := a.boxes[name]; b == nil || b.doubt {
			a.boxes[name] = &box{to: a.w.space, from: f.joined.Seq, last: f.joined.Seq, seen: map[uint64]bool{}, doubt: d.leftSince(f.nth)}
		}
	case f.left:
		if b := a.boxes[a.w.space.Space]; b != nil {
			a.past = append(a.past, b)
			delete(a.boxes, a.w.space.Space)
		}
	case f.delivery != nil && f.delivery.Event != nil:
		e := f.delivery.Event
		a.got(d, a.boxes[e.To.Space], &e.Message, e.Redelivered)
	case f.delivery != nil:
		a.got(d, a.boxes[""], f.delivery.Message, f.delivery.Redelivered)
	}
}

func (a *agent) welcome(d *door, w *edge.Welcome) {
	a.ready, a.token = true, w.ResumeToken
	mail := a.boxes[""]
	if !a.began {
		mail.from, mail.last = w.LastSeq, w.LastSeq
	}
	if w.LastSeq > mail.last {
		a.w.failLocked("%s: delivery goes on after %d, and it has only %d", a.id, w.LastSeq, mail.last)
	}
	a.w.note("%s is welcomed at %s, session goes on: %v", a.id, d.e.id, w.Resumed)
	a.w.scenes.welcomed(a, d, w)
	a.doubt = a.doubt || a.w.lax && d.hello.Resume == ""
	a.resume(w.Resumed && a.began)
	a.began = true
}

func (a *agent) notice(d *door, n *edge.Notice) {
	switch n.Kind {
	case edge.NoticeReceipt:
		a.stored(n)
	case edge.NoticeFault:
		a.w.note("%s to %s: n %d stream %q: %v", a.id, n.To.Name(), n.N, n.Stream, n.Err)
		a.fault(d, n)
	case edge.NoticeReconnect:
		a.w.scenes.sentOn(a, d, n)
	case edge.NoticePing:
		if !a.deaf {
			d.tell(upward{verb: answer, pong: n.Data})
		}
	}
}

// got checks one delivery: in order, once or marked, nothing of another's.
func (a *agent) got(d *door, b *box, m *agora.Message, again bool) {
	if b == nil {
		return // it has left the space
	}
	if uid, ok := uidOf(m); ok {
		a.w.arrived[uid] = true
	} else if uid, err := strconv.Atoi(string(m.Body)); err == nil && m.Kind == agora.Control { // a cancel of what was refused
		a.w.arrived[uid] = true
	}
	if again {
		a.w.seen.Again++
	}
	if !b.seen[m.Seq] && !again && m.Kind != agora.Gap {
		a.w.scenes.heard(a, m)
	}
	b.came = append(b.came, fmt.Sprintf("%.3f %s %d", time.Since(a.w.began).Seconds(), d.hello.Conn, m.Seq))
	switch {
	case m.Kind == agora.Gap:
		a.w.note("%s is told of a gap %d-%d", a.id, m.N, m.Seq)
		b.gaps = append(b.gaps, span{m.N, m.Seq})
		b.last = max(b.last, m.Seq)
		return
	case m.Seq > b.last:
		b.last, b.seen[m.Seq] = m.Seq, true
	case b.to.IsSpace() && m.Seq <= b.from: // it was a member before it heard of it: an earlier edge's answer was lost
		b.seen[m.Seq] = true
	case m.Kind == agora.Control && again: // an earlier edge knew that it concerned nothing any more
		b.seen[m.Seq] = true
	case !b.seen[m.Seq] && !b.told(m.Seq) && !a.lax:
		a.w.failLocked("%s: position %d of %s comes first after %d", a.id, m.Seq, b.to.Name(), b.last)
	case !again && !a.lax:
		a.w.failLocked("%s: position %d of %s comes again and is not marked: %s", a.id, m.Seq, b.to.Name(), m.Body)
	case a.reads == byPosition && b.seen[m.Seq]:
		a.w.failLocked("%s: position %d of %s comes again though it named %d", a.id, m.Seq, b.to.Name(), b.last)
	}
	if b.to.IsSpace() {
		a.confirm(d, b)
		return
	}
	switch {
	case m.Kind == agora.Receipt:
		a.far(m)
	case m.Kind == agora.Control && m.Part == agora.Cancel:
		if l := a.lanes[agora.ToAgent(m.To.Tenant, m.From)]; l != nil {
			l.cancelled(m.Stream)
		}
	}
	a.confirm(d, b)
}

// confirm acknowledges now and then; nothing of a space that the agent has said it leaves.
func (a *agent) confirm(d *door, b *box) {
	if !b.doubt && a.reads == byAck && len(b.seen)%5 == 0 && b.last > b.acked {
		b.acked = b.last
		d.tell(upward{verb: acknowledge, space: b.to.Space, ack: b.last})
	}
}

// far checks a receipt of the receiver's: what is said to have arrived did.
func (a *agent) far(m *agora.Message) {
	r, err := m.ReceiptBody()
	if err != nil {
		a.w.failLocked("%s: receipt %q: %v", a.id, m.Body, err)
		return
	}
	if r.Tier != agora.Acked {
		return
	}
	if r.Session != "" && !strings.HasPrefix(a.token, r.Session+".") {
		a.w.failLocked("%s: %+v is told to it, though the number is of another session", a.id, r)
	}
	to, arrived := agora.ToAgent(m.To.Tenant, m.From), false
	for _, p := range a.w.parts[1:] {
		// A number may be an earlier session's, which presence has brought back.
		if p.from == a && p.lane.to == to && (r.N > 0 && p.n == r.N || r.ID != "" && p.id == r.ID) {
			arrived = arrived || a.w.arrived[p.uid]
		}
	}
	if !arrived && !a.w.scenes.received(a, m.From, &r) {
		a.w.failLocked("%s: %+v is said to have been acknowledged by %s, which never got it", a.id, r, m.From)
	}
}

// uidOf returns which message a delivery is; false when it is none of an agent's own.
func uidOf(m *agora.Message) (int, bool) {
	if m.Kind == agora.Event {
		var data struct {
			UID int `json:"uid"`
		}
		err := json.Unmarshal(m.Body, &data)
		return data.UID, err == nil && data.UID > 0
	}
	uid, err := strconv.Atoi(strings.TrimSpace(string(m.Body)))
	return uid, err == nil && m.Part != agora.Abort && (m.Kind == agora.Request || m.Kind == agora.Reply || m.Kind == agora.Event)
}
