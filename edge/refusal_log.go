package edge

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/agora-relay/agora"
)

// RefusalLog logs what a door refuses, a few lines a second for each code: a flood must not fill the disk.
type RefusalLog struct {
	log *slog.Logger

	mu     sync.Mutex // guards the field below
	counts map[agora.Code]*refusedCode
}

// refusedCode is what was refused with one code in the running second.
type refusedCode struct {
	since time.Time
	lines int // written
	left  int // not written, since the last line
}

const (
	refusalLines  = 5 // a second, for each code
	refusalSecond = time.Second
	refusalText   = 200 // bytes of a message that are logged
)

// NewRefusalLog returns one that writes to log.
func NewRefusalLog(log *slog.Logger) *RefusalLog {
	return &RefusalLog{log: log, counts: map[agora.Code]*refusedCode{}}
}

// Note logs a refusal, and the cause of one that says "later", or counts it for the next line of its code. attrs are
// made only for a line.
func (r *RefusalLog) Note(e *agora.Error, attrs func() []slog.Attr) {
	left, ok := r.admit(e.Code, time.Now())
	if !ok {
		return
	}
	all := append(attrs(), slog.String("code", string(e.Code)), slog.String("why", e.Message[:min(len(e.Message), refusalText)]))
	if e.Cause != nil && e.Code == agora.Unavailable { // the cause of another may quote what was said
		all = append(all, slog.Any("err", e.Cause))
	}
	if left > 0 {
		all = append(all, slog.Int("left_out", left))
	}
	r.log.LogAttrs(context.Background(), slog.LevelInfo, "refused", all...)
}

// admit reports whether a line may be written now, and how many were not before it.
func (r *RefusalLog) admit(code agora.Code, now time.Time) (left int, ok bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	c := r.counts[code]
	if c == nil {
		c = &refusedCode{since: now}
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
