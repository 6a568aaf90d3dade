package aip

import (
	"maps"
	"slices"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
)

// watcher is one subscription to changes of nodes. Its fields are guarded by the directory's lock.
type watcher struct {
	subscriber string
	through    []string        // gateways through which it was made
	only       map[string]bool // the nodes that are meant; nil for all
	never      map[string]bool // nodes that are not meant any more

	told    map[string]*Peer // what it was told last of each node
	pending []*NodeUpdate    // what it has not taken yet, at most maxPending
	err     error            // why it is over
	over    bool
	ready   chan struct{} // holds one token while there is something to take
}

// maxPending is how many changes wait for a subscriber that reads slowly. One that has more is ended.
const maxPending = 4096

// watch begins a subscription: what changes from now on is told.
func (d *directory) watch(subscriber string, through, ids []string) *watcher {
	w := &watcher{subscriber: subscriber, through: through, never: map[string]bool{}, told: map[string]*Peer{}, ready: make(chan struct{}, 1)}
	if len(ids) > 0 {
		w.only = map[string]bool{}
		for _, id := range ids {
			w.only[id] = true
		}
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	for id := range d.members {
		w.told[id] = d.told(id, through)
	}
	for id := range d.offers {
		w.told[id] = d.told(id, through)
	}
	maps.DeleteFunc(w.told, func(id string, p *Peer) bool { return p == nil || !w.wants(id) })
	d.watchers[w] = struct{}{}
	return w
}

// unwatch ends a subscription.
func (d *directory) unwatch(w *watcher) {
	d.mu.Lock()
	defer d.mu.Unlock()
	delete(d.watchers, w)
}

// take returns what a subscriber is to be told next. over is true once that is all, and err says why where it is no
// wish of the subscriber's.
func (d *directory) take(w *watcher) (updates []*NodeUpdate, over bool, err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	updates, w.pending = w.pending, nil
	return updates, w.over, w.err
}

// unsubscribe ends what a subscriber has subscribed to: nodes with the ids, everything where there is none. It returns
// false where there was nothing.
func (d *directory) unsubscribe(subscriber string, ids []string) (any bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for w := range d.watchers {
		if w.subscriber != subscriber {
			continue
		}
		any = true
		for _, id := range ids {
			w.never[id] = true
			delete(w.told, id)
		}
		if len(ids) == 0 || w.only != nil && !slices.ContainsFunc(slices.Collect(maps.Keys(w.only)), w.wants) {
			w.end(nil)
		}
	}
	return any
}

// changed tells the subscribers what has become of a node. The lock is held.
func (d *directory) changed(id string) {
	for w := range d.watchers {
		if w.wants(id) && !w.over {
			w.change(id, d.told(id, w.through))
		}
	}
}

func (w *watcher) wants(id string) bool { return (w.only == nil || w.only[id]) && !w.never[id] }

// change has the subscriber be told of a node as it is now; nil for none.
func (w *watcher) change(id string, now *Peer) {
	before := w.told[id]
	u := &NodeUpdate{UpdateType: Updated, NodeId: id, Peer: now}
	switch {
	case now == nil && before == nil, now != nil && before != nil && proto.Equal(now, before):
		return
	case now == nil:
		u.UpdateType = Removed
		delete(w.told, id)
	case before == nil:
		u.UpdateType = Added
		w.told[id] = now
	default:
		w.told[id] = now
	}
	if len(w.pending) == maxPending {
		w.end(status.Errorf(codes.ResourceExhausted, "%d updates wait for the subscriber, which does not read them", maxPending))
		return
	}
	w.pending = append(w.pending, u)
	w.wake()
}

// end ends the subscription, behind what waits for the subscriber.
func (w *watcher) end(err error) {
	w.over, w.err = true, err
	w.wake()
}

func (w *watcher) wake() {
	select {
	case w.ready <- struct{}{}:
	default: // it has been told to look
	}
}
