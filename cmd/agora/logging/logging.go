// Package logging makes the log of a process: from a level on, as text, as JSON, or short for a person.
package logging

import (
	"fmt"
	"io"
	"log/slog"
	"math"
	"time"
)

// The formats of the log.
const (
	Text  = "text"
	JSON  = "json"
	Short = "short" // for people at a terminal
)

// Open returns a log of a format and a level, by the names that log.format and log.level have for them, that goes to w.
func Open(w io.Writer, format, level string) (*slog.Logger, error) {
	var l slog.Level
	if err := l.UnmarshalText([]byte(level)); err != nil {
		return nil, fmt.Errorf("log.level: %q is no level", level)
	}
	return newLog(w, format, l)
}

// newLog returns a log of a format and a level that goes to w.
func newLog(w io.Writer, format string, level slog.Level) (*slog.Logger, error) {
	o := &slog.HandlerOptions{Level: level, ReplaceAttr: inMilliseconds}
	switch format {
	case Text:
		return slog.New(slog.NewTextHandler(w, o)), nil
	case JSON:
		return slog.New(slog.NewJSONHandler(w, o)), nil
	case Short:
		return slog.New(newShortHandler(w, level)), nil
	}
	return nil, fmt.Errorf("log.format: %q is none of text, json and short", format)
}

// inMilliseconds has the key of each duration name the unit in which it is told: "took" becomes "took_ms". So nobody
// else need think of it.
func inMilliseconds(_ []string, a slog.Attr) slog.Attr {
	if a.Value.Kind() != slog.KindDuration {
		return a
	}
	d := a.Value.Duration()
	if d%time.Millisecond == 0 {
		return slog.Int64(a.Key+"_ms", d.Milliseconds())
	}
	return slog.Float64(a.Key+"_ms", math.Round(float64(d)/1e3)/1e3)
}
