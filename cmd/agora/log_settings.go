package main

import (
	"io"
	"log/slog"

	"github.com/spf13/pflag"
)

const formatFlag = "log.format"

// logSettings are those of the process's log.
type logSettings struct{ level, format string }

func (s *logSettings) flags(f *pflag.FlagSet) {
	f.StringVar(&s.level, "log.level", "info", "debug, info, warn or error")
	f.StringVar(&s.format, formatFlag, textLog, "text, json, or short: a line for a person, which `agora dev` has at a terminal")
}

func (s *logSettings) faults() []error {
	_, err := s.open(io.Discard)
	return []error{err}
}

// open returns the log, which goes to w.
func (s *logSettings) open(w io.Writer) (*slog.Logger, error) {
	return openLogAt(w, s.format, s.level)
}
