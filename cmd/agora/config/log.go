package config

import (
	"io"
	"log/slog"

	"github.com/agora-relay/agora/cmd/agora/logging"
	"github.com/spf13/pflag"
)

const FormatFlag = "log.format"

// logSettings are those of the process's log.
type logSettings struct{ level, Format string }

func (s *logSettings) flags(f *pflag.FlagSet) {
	f.StringVar(&s.level, "log.level", "info", "debug, info, warn or error")
	f.StringVar(&s.Format, FormatFlag, logging.Text, "text, json, or short: a line for a person, which agora dev has at a terminal")
}

func (s *logSettings) faults() []error {
	_, err := s.Open(io.Discard)
	return []error{err}
}

// Open returns the log, which goes to w.
func (s *logSettings) Open(w io.Writer) (*slog.Logger, error) {
	return logging.Open(w, s.Format, s.level)
}
