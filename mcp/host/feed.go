package host

import (
	"context"
	"encoding/json"
	"sync"
	"time"

	"github.com/agora-relay/agora/client"
)

// Bounds of what is held of a space.
const (
	maxEvents     = 500
	maxEventBytes = 1 << 20 // of all events; of the text of one a quarter
	maxStreams    = 16      // that are read at a time
)

// happening is something that happened in a space. The feed's lock guards it.
type happening struct {
	seq    uint64
	kind   string // event, joined or left
	from   string // who published, came or went
	data   json.RawMessage
	text   []byte // of a stream, as far as it has come
	done   bool   // nothing more comes
	broken string // why a stream had no normal end
	at     time.Time
}

func (h *happening) size() int { return len(h.data) + len(h.text) + 256 }

// feed holds the latest events of a space that the host is a member of.
type feed struct {
	name    string
	history int // events to begin with

	mu      sync.Mutex // guards the fields below
	space   *client.Space
	err     error // why the host can't be a member
	events  []*happening
	bytes   int
	last    uint64        // position of the last event taken in
	dropped uint64        // position of the last event that is held no more; 0 for none
	read    uint64        // position up to which events were read
	changed chan struct{} // closed when anything changes
}

func newFeed(name string, history int) *feed {
	return &feed{name: name, history: history, changed: make(chan struct{})}
}

// change is called with the lock held.
func (f *feed) change() {
	close(f.changed)
	f.changed = make(chan struct{})
}

// until waits until a condition, which is asked with the lock held, holds; its error is that of ctx.
func (f *feed) until(ctx context.Context, holds func() bool) error {
	for {
		f.mu.Lock()
		ok, changed := holds(), f.changed
		f.mu.Unlock()
		if ok {
			return nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// where says from which event on a new membership continues.
func (f *feed) where() client.JoinOptions {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.last > 0 {
		return client.JoinOptions{LastSeq: f.last}
	}
	return client.JoinOptions{History: f.history}
}

// joined takes the membership, or why there is none.
func (f *feed) joined(s *client.Space, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.space, f.err = s, err
	f.change()
}

// member returns the membership, nil while there is none, and why there can be none.
func (f *feed) member() (*client.Space, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.space, f.err
}

// follow takes in the events of a space until ctx ends, the space is left or its client is over.
func (f *feed) follow(ctx context.Context, s *client.Space) {
	var streams sync.WaitGroup
	defer streams.Wait()
	slots := make(chan struct{}, maxStreams)
	for e, err := range s.Events(ctx) {
		if err != nil {
			return
		}
		h := f.add(e)
		if !e.Stream {
			continue
		}
		select {
		case slots <- struct{}{}:
			streams.Go(func() {
				f.readStream(ctx, e, h)
				<-slots
			})
		default:
			f.end(h, "too many streams at a time; this one was not read")
			e.Close()
		}
	}
}

// add takes an event in.
func (f *feed) add(e *client.Event) *happening {
	h := &happening{seq: e.Seq, kind: "event", from: e.From, data: e.Data, done: !e.Stream, at: time.Now()}
	if r := e.Roster; r != nil {
		h.kind, h.from, h.done = "joined", r.Joined, true
		if r.Left != "" {
			h.kind, h.from = "left", r.Left
		}
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.last = max(f.last, e.Seq)
	if h.from == "" { // a list of members that tells no change
		return h
	}
	f.events = append(f.events, h)
	f.bytes += h.size()
	f.bound()
	f.change()
	return h
}

// bound forgets the oldest events where there are too many. The lock is held.
func (f *feed) bound() {
	for len(f.events) > maxEvents || f.bytes > maxEventBytes && len(f.events) > 1 {
		f.dropped = f.events[0].seq
		f.bytes -= f.events[0].size()
		f.events = f.events[1:]
	}
}

// readStream takes the text of an event as it comes, until its end or that of ctx.
func (f *feed) readStream(ctx context.Context, e *client.Event, h *happening) {
	defer e.Close()
	for {
		text, err := e.Next(ctx)
		switch {
		case ctx.Err() != nil:
			f.end(h, "the connection ended before the stream did")
			return
		case ended(err):
			f.end(h, "")
			return
		case err != nil:
			f.end(h, err.Error())
			return
		case !f.grow(h, text):
			f.end(h, "the rest was too much to be held")
			return
		}
	}
}

// grow adds a piece of text; it returns false where that is too much.
func (f *feed) grow(h *happening, text string) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(h.text)+len(text) > maxEventBytes/4 {
		return false
	}
	h.text = append(h.text, text...)
	f.bytes += len(text)
	f.bound()
	f.change()
	return true
}

func (f *feed) end(h *happening, broken string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	h.done, h.broken = true, broken
	f.change()
}
