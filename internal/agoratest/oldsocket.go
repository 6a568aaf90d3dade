package agoratest

import "strings"

// oldSocket is a socket that its agent has forgotten, without a word to the edge: what comes through it meanwhile stays
// with the system. It belongs to the agent until that is bound to another one. What is said after that must not come
// through it.
type oldSocket struct {
	conn *Client
	said map[string]uint64 // what had been said to the agent by then, by sender; nil before
}

// forget leaves a socket as it is.
func (k *talker) forget(conn *Client) {
	conn.Pause()
	k.mu.Lock()
	defer k.mu.Unlock()
	k.left = append(k.left, &oldSocket{conn: conn})
}

// bound notes that the agent has another socket, and what had been said to it then. The caller holds mu.
func (k *talker) bound() {
	for _, l := range k.left {
		if l.said == nil {
			l.said = k.said()
		}
	}
}

// said returns the last number that each sender has handed out for the agent.
func (k *talker) said() map[string]uint64 {
	said := map[string]uint64{}
	for from, in := range k.in {
		said[from] = in.track.Line().Made()
	}
	return said
}

// leftovers reads what has come through forgotten sockets, and waits until their edges have closed them.
func (t *Talk) leftovers() {
	for _, k := range t.talkers {
		k.mu.Lock()
		all := k.left
		k.left = nil
		k.mu.Unlock()
		for _, l := range all {
			k.readLeft(l)
		}
	}
}

// readLeft reads a forgotten socket to its end.
func (k *talker) readLeft(l *oldSocket) {
	l.conn.Resume()
	for {
		f, ok := l.conn.Next(patience)
		if !ok {
			break
		}
		from, n := f.Text("from"), f.Uint("n")
		if strings.HasPrefix(f.Type(), "message") && f.Has("n") && l.said != nil && n > l.said[from] {
			k.note("got number %d of %s through a socket that it had left, when %d had been said", n, from, l.said[from])
			break
		}
	}
	if l.conn.Gone() == nil {
		k.note("left a socket, which was not closed")
	}
	l.conn.Drop()
}

// note keeps a fault.
func (k *talker) note(format string, args ...any) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.fault(format, args...)
}
