package host

import (
	"sync"
	"time"

	"github.com/agora-relay/agora"
	"github.com/agora-relay/agora/client"
	"github.com/agora-relay/agora/wire"
)

// maxSent is how many messages a host remembers that it has sent.
const maxSent = 256

// sent remembers the latest messages that were sent.
type sent struct {
	mu  sync.Mutex
	all []*sending
}

// sending is a message that was sent.
type sending struct {
	to      string
	request string // its request_id, where it asked
	p       *client.Pending
	at      time.Time
}

func (s *sent) add(to, request string, p *client.Pending) *sending {
	s.mu.Lock()
	defer s.mu.Unlock()
	m := &sending{to, request, p, time.Now()}
	s.all = append(s.all[max(0, len(s.all)+1-maxSent):], m)
	return m
}

// find returns the message with an id, or that asked under it; nil where it is not remembered.
func (s *sent) find(id string) *sending {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, m := range s.all {
		if m.p.ID() == id || m.request != "" && m.request == id {
			return m
		}
	}
	return nil
}

// latest returns the last messages, the latest first.
func (s *sent) latest(limit int) (all []*sending) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i := len(s.all) - 1; i >= 0 && len(all) < limit; i-- {
		all = append(all, s.all[i])
	}
	return all
}

// tier returns how far the message has come, in a word.
func (m *sending) tier() string {
	if tier := m.p.Reached(); tier != 0 {
		return wire.TierName(tier)
	}
	select {
	case <-m.p.Done():
		return refused
	default:
		return "unconfirmed"
	}
}

const refused = "refused"

const bothTiers = agora.Delivered | agora.Acked
