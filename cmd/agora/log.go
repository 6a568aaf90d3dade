package main

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"math"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/agora-relay/agora/internal/trace"
	"github.com/agora-relay/agora/presence"
)

// The formats of the log.
const (
	textLog  = "text"
	jsonLog  = "json"
	shortLog = "short" // for people at a terminal
)

const formatFlag = "log.format"

// newLog returns a log of a format and a level that goes to w.
func newLog(w io.Writer, format string, level slog.Level) (*slog.Logger, error) {
	o := &slog.HandlerOptions{Level: level, ReplaceAttr: inMilliseconds}
	switch format {
	case textLog:
		return slog.New(slog.NewTextHandler(w, o)), nil
	case jsonLog:
		return slog.New(slog.NewJSONHandler(w, o)), nil
	case shortLog:
		return slog.New(newShortHandler(w, level)), nil
	}
	return nil, fmt.Errorf("log.format: %q is none of text, json and short", format)
}

// inMilliseconds has the key of each duration name the unit in which it is told: "took" becomes "took_ms". So nobody else need think of it.
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

// logger returns the program's log, which goes to w.
func (s *settings) logger(w io.Writer) (*slog.Logger, error) {
	var level slog.Level
	if err := level.UnmarshalText([]byte(s.logLevel)); err != nil {
		return nil, fmt.Errorf("log.level: %q is no level", s.logLevel)
	}
	return newLog(w, s.logFormat, level)
}

// openLog returns the process's log, on stderr. What libraries would write there by themselves goes to it as well.
func (s *settings) openLog(cmd *cobra.Command) (*slog.Logger, error) {
	log, err := s.logger(cmd.ErrOrStderr())
	if err != nil {
		return nil, err
	}
	presence.LogClient(log)
	trace.LogLibrary(log)
	slog.SetDefault(log) // package log too
	return log, nil
}

// announce says that an edge is ready, and where, on stdout: a line of JSON where the log is that.
func (s *settings) announce(cmd *cobra.Command, edges ...*edgeServer) error {
	var b strings.Builder
	b.WriteString("ready\n")
	for _, e := range edges {
		ws, grpc, admin := e.public.url("ws")+"/ws", "", e.admin.url("http")
		if e.grpc != nil {
			grpc = e.grpc.url()
		}
		if s.logFormat == jsonLog {
			attrs := []slog.Attr{slog.String("edge", e.name), slog.String("agents", ws), slog.String("grpc", grpc), slog.String("p2p", e.peerAddress()), slog.String("admin", admin)}
			attrs = slices.DeleteFunc(attrs, func(a slog.Attr) bool { return a.Value.String() == "" })
			slog.New(slog.NewJSONHandler(cmd.OutOrStdout(), nil)).LogAttrs(context.Background(), slog.LevelInfo, "ready", attrs...)
			continue
		}
		if grpc != "" {
			ws += "  " + grpc
		}
		if p2p := e.peerAddress(); p2p != "" {
			ws += "  " + p2p
		}
		fmt.Fprintf(&b, "  %s  %s  admin %s\n", e.name, ws, admin)
	}
	if s.logFormat == jsonLog {
		return nil
	}
	_, err := io.WriteString(cmd.OutOrStdout(), b.String())
	return err
}

// tellFatal tells why the program ends, a line for each fault: in JSON where that is the format of its log.
func tellFatal(stderr io.Writer, cmd *cobra.Command, args []string, err error) {
	var log *slog.Logger
	if logsJSON(cmd, args) {
		log = slog.New(slog.NewJSONHandler(stderr, nil))
	}
	for line := range strings.SplitSeq(err.Error(), "\n") {
		if log != nil {
			log.Error("agora "+cmd.Name()+" has failed", "err", line)
			continue
		}
		fmt.Fprintf(stderr, "agora: %s\n", line)
	}
}

// logsJSON tells whether a command has a log that was to be JSON, however little of what it was told makes sense.
func logsJSON(cmd *cobra.Command, args []string) bool {
	if cmd == nil || cmd.Annotations[hasLog] == "" {
		return false
	}
	format := cmd.Flags().Lookup(formatFlag)
	if i := slices.Index(args, "--"+formatFlag); i >= 0 && i+1 < len(args) && !format.Changed {
		return args[i+1] == jsonLog // it stands behind a flag that was not understood
	}
	if slices.Contains(args, "--"+formatFlag+"="+jsonLog) {
		return true
	}
	_, _ = fill(cmd.Flags(), os.LookupEnv) // its faults were told
	return format.Value.String() == jsonLog
}

// hasLog marks the commands that run on and have a log, in their annotations.
const hasLog = "log"

var withLog = map[string]string{hasLog: "yes"}
