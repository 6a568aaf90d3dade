package inbox

import (
	"cmp"
	"context"
	"slices"
	"sync"

	"github.com/agora-relay/agora/client"
)

// Config bounds an Inbox. The zero value of everything works.
type Config struct {
	MaxMessages int        // that are held; beyond them the rest waits in the cluster; 1000
	MaxBytes    int        // of what is held, beyond which the rest waits in the cluster; 16 MiB
	MaxText     int        // bytes of the text of one stream; beyond them it is given up; 1 MiB
	OnNews      func(Item) // told of each message once it is whole, in a goroutine of Run; must not block; nil: nobody is
}

// Bounds of the acknowledged messages that can still be answered, and read on.
const (
	maxRecent      = 256
	maxRecentBytes = 4 << 20
)

// Inbox holds the messages of an agent that nobody has acknowledged, in order. Its methods may be called by many
// goroutines at a time.
type Inbox struct {
	cfg Config

	mu          sync.Mutex // guards the fields below, and those of the entries
	entries     []*entry
	bytes       int
	recent      []*entry // acknowledged, the latest last
	recentBytes int
	awaited     map[question]int // replies that somebody waits for
	gaps        []client.Gap     // not told yet
	changed     chan struct{}    // closed when anything changes
}

// New returns an empty inbox.
func New(cfg Config) *Inbox {
	cfg.MaxMessages = cmp.Or(cfg.MaxMessages, 1000)
	cfg.MaxBytes = cmp.Or(cfg.MaxBytes, 16<<20)
	cfg.MaxText = cmp.Or(cfg.MaxText, 1<<20)
	if cfg.OnNews == nil {
		cfg.OnNews = func(Item) {}
	}
	return &Inbox{cfg: cfg, awaited: map[question]int{}, changed: make(chan struct{})}
}

// Run takes in what a client receives until ctx ends or the client is over, and returns why. What an earlier run has
// left is forgotten: what of it was not acknowledged comes again. It is not called twice at a time.
func (b *Inbox) Run(ctx context.Context, c *client.Client) error {
	var work sync.WaitGroup
	defer work.Wait()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	b.clear()
	for {
		if err := b.room(ctx); err != nil {
			return err
		}
		m, err := c.Receive(ctx)
		if err != nil {
			return err
		}
		e := b.add(ctx, m)
		if m.Stream {
			work.Go(func() { b.read(ctx, e) })
		} else {
			b.cfg.OnNews(b.item(e))
		}
	}
}

// clear forgets what is held.
func (b *Inbox) clear() {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, e := range b.entries {
		e.free()
	}
	b.entries, b.bytes = nil, 0
	b.change()
}

// room waits until more may be held.
func (b *Inbox) room(ctx context.Context) error {
	return b.until(ctx, func() bool { return len(b.entries) < b.cfg.MaxMessages && b.bytes < b.cfg.MaxBytes })
}

// until waits until a condition, which is asked with the lock held, holds; its error is that of ctx.
func (b *Inbox) until(ctx context.Context, holds func() bool) error {
	for {
		b.mu.Lock()
		ok, changed := holds(), b.changed
		b.mu.Unlock()
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

// change tells everybody who waits. It is called with the lock held.
func (b *Inbox) change() {
	close(b.changed)
	b.changed = make(chan struct{})
}

// List returns the messages behind a position that are not acknowledged, the first of them, and how many more there
// are. It notes that these were shown. Replies that somebody waits for by Await, or has got by it, are not among
// them.
func (b *Inbox) List(after uint64, limit int) (items []Item, more int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, e := range b.entries {
		switch {
		case e.m.Seq <= after || b.hidden(e):
		case len(items) < limit:
			e.shown = true
			items = append(items, e.item())
		default:
			more++
		}
	}
	return items, more
}

// Peek returns the messages that List would, all of them, and takes no note of it.
func (b *Inbox) Peek() (items []Item) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, e := range b.entries {
		if !b.hidden(e) {
			items = append(items, e.item())
		}
	}
	return items
}

// Wait waits until there is a message behind a position that List would return. Its error is that of ctx.
func (b *Inbox) Wait(ctx context.Context, after uint64) error {
	return b.until(ctx, func() bool {
		return slices.ContainsFunc(b.entries, func(e *entry) bool { return e.m.Seq > after && !b.hidden(e) })
	})
}

// Full reports whether no more is taken in until something is acknowledged.
func (b *Inbox) Full() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return len(b.entries) >= b.cfg.MaxMessages || b.bytes >= b.cfg.MaxBytes
}

// hidden reports whether a message is not for List. The lock is held.
func (b *Inbox) hidden(e *entry) bool {
	if !e.m.IsReply {
		return false
	}
	return e.given || b.awaited[question{e.m.From, e.m.RequestID()}] > 0 || e.m.StreamID != "" && b.awaited[question{e.m.From, e.m.StreamID}] > 0
}

// Lose notes messages that are lost.
func (b *Inbox) Lose(g client.Gap) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.gaps = append(b.gaps[max(0, len(b.gaps)-maxRecent):], g)
	b.change()
}

// Lost returns what was lost since it was asked last.
func (b *Inbox) Lost() []client.Gap {
	b.mu.Lock()
	defer b.mu.Unlock()
	gaps := b.gaps
	b.gaps = nil
	return gaps
}
