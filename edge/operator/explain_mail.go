package operator

import (
	"fmt"
	"time"

	"github.com/agora-relay/agora/presence"
)

// mail tells what became of a message in a mailbox, and why.
func (r *reading) mail(f *Fate) (state, why string) {
	f.Given = r.given(f.Seq, f.Stored.At)
	to := ""
	if f.Given != nil {
		to = fmt.Sprintf(" to connection %s at %s", f.Given.Conn, f.Given.Edge)
	}
	switch {
	case f.Seq <= r.agent.Confirmed:
		return "acknowledged", "its receiver is known to have it: it was written" + to
	case f.Seq <= r.agent.Written:
		why = "it was written" + to + ", and its receiver has not shown yet that it came: "
		switch {
		case r.agent.Live != nil && r.agent.Live.Acks:
			return "written", why + "it acknowledges by itself, and has not"
		case r.agent.State == "online":
			return "written", why + "a pong that is asked for every second or two shows it"
		}
		return "written", why + "the connection is gone, and the message is delivered again, marked, to the next one"
	}
	return "waiting", r.waits()
}

// waits tells why what is unread is not delivered.
func (r *reading) waits() string {
	a := r.agent
	live := a.Live
	switch {
	case a.State == "away":
		return "its receiver has no session" + r.left() + "; it is delivered when the agent connects"
	case a.State == "grace":
		return "its receiver's connection is lost" + r.left() + "; the session waits for it until " + clock(a.GraceEnds)
	case a.State == "ending":
		return "its receiver's session is just being ended; it is delivered to the next one"
	case len(a.Unsettled) > 0:
		return fmt.Sprintf("its receiver is connecting to %s, which waits until %v has handed over", a.Edge, a.Unsettled)
	case live == nil:
		return fmt.Sprintf("its receiver is said to be at %s, which does not answer: it is delivered once that edge does, or the agent is elsewhere", a.Edge)
	case !live.Begun || live.Over:
		return fmt.Sprintf("its receiver's connection %s at %s is about to begin, or to end", a.Conn, a.Edge)
	case live.Withheld:
		return fmt.Sprintf("%s may not deliver at the moment: it has to look after its claims first", a.Edge)
	case live.Queued > 0:
		return fmt.Sprintf("its receiver reads slowly: connection %s at %s has %d bytes before its socket, and gave a sign of life %s ago",
			a.Conn, a.Edge, live.Queued, time.Duration(live.HeardMS)*time.Millisecond)
	}
	return fmt.Sprintf("connection %s at %s has not come so far: its receiver reads slowly, or the message is just on its way", a.Conn, a.Edge)
}

// left says when and why the agent's last connection ended.
func (r *reading) left() string {
	for i := len(r.agent.History) - 1; i >= 0; i-- {
		if e := r.agent.History[i]; e.What == presence.Left {
			return fmt.Sprintf(" since %s (connection %s left %s: %s)", clock(&e.At), e.Conn, e.Edge, e.Why)
		}
	}
	return ""
}

func clock(t *time.Time) string {
	if t == nil {
		return "?"
	}
	return t.UTC().Format(time.RFC3339)
}

// given finds the connection to which a position was written: the first that left behind having written as far, or the
// one that is there. nil where history does not reach back so far, or nobody has it.
func (r *reading) given(seq uint64, stored time.Time) *GivenTo {
	var began *presence.Event
	for i := range r.agent.History {
		e := &r.agent.History[i]
		switch e.What {
		case presence.Began:
			began = e
		case presence.Left:
			if e.Written >= seq && began != nil && began.Epoch == e.Epoch && began.After < seq {
				return &GivenTo{Edge: e.Edge, Conn: e.Conn, From: later(stored, began.At), To: some(e.At)}
			}
		}
	}
	if l := r.agent.Live; l != nil && l.Written >= seq {
		return &GivenTo{Edge: r.agent.Edge, Conn: r.agent.Conn, From: later(stored, l.Since.UTC())}
	}
	return nil
}

func later(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}
