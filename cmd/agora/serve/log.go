package serve

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/agora-relay/agora/cmd/agora/config"
	"github.com/agora-relay/agora/cmd/agora/logging"
	"github.com/agora-relay/agora/internal/trace"
	"github.com/agora-relay/agora/presence"
)

// openLog returns the process's log, on stderr. What libraries would write there by themselves goes to it as well.
func openLog(cmd *cobra.Command, s *config.Settings) (*slog.Logger, error) {
	log, err := s.Log.Open(cmd.ErrOrStderr())
	if err != nil {
		return nil, err
	}
	presence.LogClient(log)
	trace.LogLibrary(log)
	slog.SetDefault(log) // package log too
	return log, nil
}

// announce says that an edge is ready, and where, on stdout: a line of JSON where the log is that.
func announce(cmd *cobra.Command, s *config.Settings, edges ...*edgeServer) error {
	var b strings.Builder
	b.WriteString("ready\n")
	for _, e := range edges {
		ws, grpc, admin := e.ports.public.url("ws")+"/ws", "", e.ports.admin.localURL("http")
		if e.ports.grpc != nil {
			grpc = e.ports.grpc.url()
		}
		if s.Log.Format == logging.JSON {
			attrs := []slog.Attr{slog.String("edge", e.name), slog.String("agents", ws), slog.String("grpc", grpc), slog.String("p2p", e.doors.peerAddress()), slog.String("admin", admin)}
			attrs = slices.DeleteFunc(attrs, func(a slog.Attr) bool { return a.Value.String() == "" })
			slog.New(slog.NewJSONHandler(cmd.OutOrStdout(), nil)).LogAttrs(context.Background(), slog.LevelInfo, "ready", attrs...)
			continue
		}
		if grpc != "" {
			ws += "  " + grpc
		}
		if p2p := e.doors.peerAddress(); p2p != "" {
			ws += "  " + p2p
		}
		fmt.Fprintf(&b, "  %s  %s  admin %s\n", e.name, ws, admin)
	}
	if s.Log.Format == logging.JSON {
		return nil
	}
	_, err := io.WriteString(cmd.OutOrStdout(), b.String())
	return err
}

// HasLog marks the commands that run on and have a log, in their annotations.
const HasLog = "log"

var withLog = map[string]string{HasLog: "yes"}
