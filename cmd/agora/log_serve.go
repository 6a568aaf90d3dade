package main

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/agora-relay/agora/internal/trace"
	"github.com/agora-relay/agora/presence"
)

// openLog returns the process's log, on stderr. What libraries would write there by themselves goes to it as well.
func openLog(cmd *cobra.Command, s *settings) (*slog.Logger, error) {
	log, err := s.log.open(cmd.ErrOrStderr())
	if err != nil {
		return nil, err
	}
	presence.LogClient(log)
	trace.LogLibrary(log)
	slog.SetDefault(log) // package log too
	return log, nil
}

// announce says that an edge is ready, and where, on stdout: a line of JSON where the log is that.
func announce(cmd *cobra.Command, s *settings, edges ...*edgeServer) error {
	var b strings.Builder
	b.WriteString("ready\n")
	for _, e := range edges {
		ws, grpc, admin := e.public.url("ws")+"/ws", "", e.admin.url("http")
		if e.grpc != nil {
			grpc = e.grpc.url()
		}
		if s.log.format == jsonLog {
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
	if s.log.format == jsonLog {
		return nil
	}
	_, err := io.WriteString(cmd.OutOrStdout(), b.String())
	return err
}

// hasLog marks the commands that run on and have a log, in their annotations.
const hasLog = "log"

var withLog = map[string]string{hasLog: "yes"}
