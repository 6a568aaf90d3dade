package spaces

import (
	"cmp"
	"slices"
)

// Squeeze has the queue of each member keep no more than share/whole of
// Config.QueueBytes from now on; a member that has more reads the log by
// itself when it gets there.
func (h *Hub) Squeeze(share, whole int) {
	h.queue.Store(int64(h.cfg.QueueBytes) * int64(share) / int64(whole))
}

// room is how many bytes the queue of one member may keep.
func (h *Hub) room() int { return int(h.queue.Load()) }

// Held returns, by tenant, the bytes of events that are kept for members, each counted
// once however many members wait for it, and of those not handed on yet. It
// does not block; its cost is that of a look at every member.
func (h *Hub) Held() map[string]int64 {
	h.mu.Lock()
	fans := make([]*fan, 0, len(h.fans))
	for _, f := range h.fans {
		fans = append(fans, f)
	}
	h.mu.Unlock()
	held := map[string]int64{}
	for _, f := range fans {
		held[f.to.Tenant] += f.held()
	}
	return held
}

// span is a part of what a fan has handed on, in bytes since it was opened.
type span struct{ from, to int64 }

// held returns what the fan's members and its inbox keep.
func (f *fan) held() (held int64) {
	f.mu.Lock()
	spans := make([]span, 0, len(f.members))
	for p := range f.places {
		if s, ok := p.span(); ok {
			spans = append(spans, s)
		}
	}
	inbox := f.inbox
	f.mu.Unlock()
	if inbox != nil {
		held = int64(inbox.Held())
	}
	slices.SortFunc(spans, func(a, b span) int { return cmp.Compare(a.from, b.from) })
	var done int64
	for _, s := range spans {
		held += max(s.to-max(s.from, done), 0)
		done = max(done, s.to)
	}
	return held
}

// span returns which part of what was handed on waits in p's queue.
func (p *Place) span() (s span, ok bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.queue) == 0 {
		return s, false
	}
	first := p.queue[0]
	return span{first.ends - int64(first.size()), p.queue[len(p.queue)-1].ends}, true
}

// Held returns the bytes that p alone keeps, while it lags and reads the log
// by itself; what it waits for with others is in [Hub.Held]. It does not block.
func (p *Place) Held() int {
	p.mu.Lock()
	inbox := p.inbox
	p.mu.Unlock()
	if inbox == nil {
		return 0
	}
	return inbox.Held()
}
