package edge

import "slices"

// lose forgets what the senders of whole messages wanted to know that were handed to the door, and that no reader gets. What was not reported as written
// yet is remembered until it is.
func (o *receiptQueue) lose(at span) {
	if o == nil {
		return
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	o.unacked = slices.DeleteFunc(o.unacked, func(r pendingReceipt) bool { return r.isLost(at) })
	if o.writing > 0 && o.writing <= at.last {
		o.lost = append(o.lost, at)
	}
}

// isLost reports whether no reader gets the message, where it gets no whole ones of a part of the mailbox.
func (r pendingReceipt) isLost(at span) bool { return r.whole && at.first <= r.seq && r.seq <= at.last }
