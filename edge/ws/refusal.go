package ws

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/agora-relay/agora"
)

// refusals logs what is refused, a few lines a second for each code: a flood must not fill the disk.
type refusals struct {
	log *slog.Logger

	mu     sync.Mutex // guards the field below
	counts map[agora.Code]*refused
}

// refused is what was refused with one code in the running second.
type refused struct {
	since time.Time
	lines int // written
	left  int // not written, since the last line
}

const (
	refusalLines  = 5 // a second, for each code
	refusalSecond = time.Second
	refusalText   = 200 // bytes of a message that are logged
)

func newRefusals(log *slog.Logger) *refusals {
	return &refusals{log: log, counts: map[agora.Code]*refused{}}
}

// note logs a refusal, or counts it for the next line of its code. attrs are made only for a line.
func (r *refusals) note(code agora.Code, why string, attrs func() []slog.Attr) {
	left, ok := r.admit(code, time.Now())
	if !ok {
		return
	}
	all := append(attrs(), slog.String("code", string(code)), slog.String("why", why[:min(len(why), refusalText)]))
	if left > 0 {
		all = append(all, slog.Int("left_out", left))
	}
	r.log.LogAttrs(context.Background(), slog.LevelInfo, "refused", all...)
}

// admit tells whether a line may be written now, and how many were not before it.
func (r *refusals) admit(code agora.Code, now time.Time) (left int, ok bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	c := r.counts[code]
	if c == nil {
		c = &refused{since: now}
		r.counts[code] = c
	}
	if now.Sub(c.since) >= refusalSecond {
		c.since, c.lines = now, 0
	}
	if c.lines == refusalLines {
		c.left++
		return 0, false
	}
	c.lines++
	left, c.left = c.left, 0
	return left, true
}

// attrs name the connection in the log.
func (c *conn) attrs() []slog.Attr {
	s := c.session.Load()
	if s == nil {
		return []slog.Attr{slog.String("from", c.pass.From().String())}
	}
	return []slog.Attr{slog.String("agent", string(s.Agent())), slog.String("conn", s.Conn())}
}
