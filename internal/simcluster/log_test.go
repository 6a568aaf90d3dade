package simcluster

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
)

// storyLog has what an edge logs stand in the story.
type storyLog struct {
	w     *world
	edge  string
	attrs string
}

// Enabled implements slog.Handler.
func (l storyLog) Enabled(context.Context, slog.Level) bool { return l.w.plan.Logs }

// Handle implements slog.Handler.
func (l storyLog) Handle(_ context.Context, r slog.Record) error {
	var b strings.Builder
	r.Attrs(func(a slog.Attr) bool { fmt.Fprintf(&b, " %s=%v", a.Key, a.Value); return true })
	l.w.say("%s logs: %s%s%s", l.edge, r.Message, l.attrs, b.String())
	return nil
}

// WithAttrs implements slog.Handler.
func (l storyLog) WithAttrs(as []slog.Attr) slog.Handler {
	for _, a := range as {
		l.attrs += fmt.Sprintf(" %s=%v", a.Key, a.Value)
	}
	return l
}

// WithGroup implements slog.Handler.
func (l storyLog) WithGroup(string) slog.Handler { return l }
