package inbox

import (
	"context"
	"slices"

	"github.com/agora-relay/agora/client"
)

// Ack acknowledges the messages up to a position that were shown and are whole, and returns how many these are. left is
// how many up to there are not acknowledged, as nobody has seen them, or they are still being written.
func (b *Inbox) Ack(upTo uint64) (acknowledged, left int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	before := len(b.entries)
	b.drop(func(e *entry) bool { return e.m.Seq <= upTo && (e.shown || e.given) && e.done })
	for _, e := range b.entries {
		if e.m.Seq <= upTo && !b.hidden(e) {
			left++
		}
	}
	return before - len(b.entries), left
}

// AckGiven acknowledges the replies that Await has returned.
func (b *Inbox) AckGiven() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.drop(func(e *entry) bool { return e.given })
}

// drop acknowledges entries and holds them no more, but among the recent ones. The lock is held.
func (b *Inbox) drop(which func(*entry) bool) {
	kept := make([]*entry, 0, len(b.entries))
	for _, e := range b.entries {
		if !which(e) {
			kept = append(kept, e)
			continue
		}
		b.bytes -= e.size()
		e.m.Ack()
		e.free()
		e.gone = true
		b.recent = append(b.recent, e)
		b.recentBytes += e.size()
	}
	for len(b.recent) > maxRecent || b.recentBytes > maxRecentBytes && len(b.recent) > 1 {
		b.recentBytes -= b.recent[0].size()
		b.recent = b.recent[1:]
	}
	if len(kept) < len(b.entries) {
		b.entries = kept
		b.change()
	}
}

// Message returns the message at a position, if it is held, or was acknowledged not long ago: it may still be answered,
// and read on.
func (b *Inbox) Message(seq uint64) (Item, *client.Message, bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	at := func(e *entry) bool { return e.m.Seq == seq }
	for _, all := range [][]*entry{b.entries, b.recent} {
		if i := slices.IndexFunc(all, at); i >= 0 {
			all[i].shown = true
			return all[i].item(), all[i].m, true
		}
	}
	return Item{}, nil, false
}

// Answered acknowledges a message that was answered, though it may still be being written.
func (b *Inbox) Answered(seq uint64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.drop(func(e *entry) bool { return e.m.Seq == seq })
}

// question names a reply that is waited for: who gives it, and the request, or the stream that asked, that it answers.
type question struct{ from, id string }

// Await waits for the reply of an agent to a request, and for all of its text. progress is told what there is of it,
// whenever that has grown; it may be nil. When ctx ends first, the error is that of ctx, the Item what there is, and
// the reply is for List. A reply that was returned whole is for AckGiven, and is returned again as long as Message
// would.
func (b *Inbox) Await(ctx context.Context, from, requestID string, progress func(Item)) (Item, error) {
	q := question{from, requestID}
	b.await(q, 1)
	defer b.await(q, -1)
	for had := 0; ; {
		b.mu.Lock()
		var it Item
		e, changed := b.answer(q), b.changed
		if e != nil {
			e.given = e.given || e.done
			it = e.item()
		}
		b.mu.Unlock()
		if e != nil && !it.Streaming {
			return it, nil
		}
		if e != nil && progress != nil && len(it.Text) > had {
			had = len(it.Text)
			progress(it)
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return it, ctx.Err()
		}
	}
}

func (b *Inbox) await(q question, n int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.awaited[q] += n; b.awaited[q] == 0 {
		delete(b.awaited, q)
	}
	b.change()
}

// answer returns the reply to a question, nil while there is none. The lock is held.
func (b *Inbox) answer(q question) *entry {
	for _, all := range [][]*entry{b.entries, b.recent} {
		for _, e := range all {
			if e.m.IsReply && e.m.From == q.from && (e.m.RequestID() == q.id || e.m.StreamID == q.id) {
				return e
			}
		}
	}
	return nil
}
