package logging

import (
	"bytes"
	"context"
	"io"
	"log/slog"
	"sync"
)

// shortHandler writes a short line for each record, for who reads along: the time of day, what happened, and of its
// attributes those that tell a person something. Machines are given all by the other formats.
type shortHandler struct {
	to    *shortLines
	attrs slog.Handler // writes what is left of a record into to.rest
}

// shortLines is where the lines of a log go, and of all that were made of it.
type shortLines struct {
	mu   sync.Mutex // guards the fields below
	out  io.Writer
	rest bytes.Buffer
}

// leftOut are the attributes that a short line goes without.
var leftOut = map[string]bool{
	slog.TimeKey: true, slog.LevelKey: true, slog.MessageKey: true,
	"tenant": true, "principal": true, "session": true, "conn": true, "close": true, "resumed": true,
	"frames_in": true, "frames_out": true, "bytes_in": true, "bytes_out": true,
}

func newShortHandler(w io.Writer, level slog.Level) slog.Handler {
	to := &shortLines{out: w}
	return shortHandler{to, slog.NewTextHandler(&to.rest, &slog.HandlerOptions{Level: level, ReplaceAttr: shorten})}
}

func shorten(groups []string, a slog.Attr) slog.Attr {
	if len(groups) == 0 && (leftOut[a.Key] || a.Value.String() == "") {
		return slog.Attr{}
	}
	return a
}

// Enabled reports whether records of a level are written.
func (h shortHandler) Enabled(ctx context.Context, l slog.Level) bool { return h.attrs.Enabled(ctx, l) }

// Handle writes a record's line.
func (h shortHandler) Handle(ctx context.Context, r slog.Record) error {
	h.to.mu.Lock()
	defer h.to.mu.Unlock()
	h.to.rest.Reset()
	if err := h.attrs.Handle(ctx, r); err != nil {
		return err
	}
	line := r.Time.AppendFormat(nil, "15:04:05 ")
	if r.Level != slog.LevelInfo {
		line = append(append(line, r.Level.String()...), ' ')
	}
	line = append(line, r.Message...)
	if h.to.rest.Len() > 1 {
		line = append(line, "  "...)
	}
	_, err := h.to.out.Write(append(line, h.to.rest.Bytes()...))
	return err
}

// WithAttrs returns a handler that has attributes in every line.
func (h shortHandler) WithAttrs(as []slog.Attr) slog.Handler {
	return shortHandler{h.to, h.attrs.WithAttrs(as)}
}

// WithGroup returns a handler whose attributes are in a group.
func (h shortHandler) WithGroup(name string) slog.Handler {
	return shortHandler{h.to, h.attrs.WithGroup(name)}
}
