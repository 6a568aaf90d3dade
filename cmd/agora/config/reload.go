package config

import (
	"errors"
	"log/slog"
	"os"
	"slices"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// reloadable are the settings that a running edge takes up when its file
// changes, beside the contents of the files that settings name.
var reloadable = []string{
	"limits.rate", "limits.bytes", "limits.burst", "limits.streams", "limits.spaces", "limits.card", "limits.calls", "limits.edge.calls",
	"limits.edge.streams", "limits.edge.spaces", "limits.edge.nodes", "limits.nodes",
	"limits.registrations", "limits.cluster.registrations", "limits.cluster.cards",
	"limits.principal.rate", "limits.principal.bytes", "limits.tenant.rate", "limits.tenant.bytes",
	"limits.connections-per-principal", "limits.connections-per-ip", "limits.handshakes", "limits.handshakes-per-ip",
	"server.trusted-proxies",
}

// Reloader reads the settings of a command again, as its file says now. What
// was given as a flag or by the environment stays.
type Reloader struct {
	Path   string
	Flags  *pflag.FlagSet // as the command was started
	given  []string       // of those: on the command line
	define func(*pflag.FlagSet) *Settings
}

// NewReloader returns how to read a command's settings again; nil where no file was named.
func NewReloader(cmd *cobra.Command, define func(*pflag.FlagSet) *Settings) *Reloader {
	file := cmd.Flags().Lookup(configFlag)
	if file == nil || file.Value.String() == "" {
		return nil
	}
	r := &Reloader{Path: file.Value.String(), Flags: cmd.Flags(), define: define}
	for name, origin := range OriginsOf(cmd).from {
		if origin == "flag" {
			r.given = append(r.given, name)
		}
	}
	return r
}

// Reloaded is what reading again has found.
type Reloaded struct {
	Settings *Settings
	Flags    *pflag.FlagSet
}

// Read reads the file, which must be right as a whole.
func (r *Reloader) Read() (Reloaded, error) {
	f := pflag.NewFlagSet("", pflag.ContinueOnError)
	s := r.define(f)
	for _, name := range append([]string{configFlag}, r.given...) {
		from, to := r.Flags.Lookup(name), f.Lookup(name)
		if from == nil || to == nil {
			continue
		}
		if err := copyValue(from, to); err != nil {
			return Reloaded{}, err
		}
		to.Changed = true
	}
	_, err := Fill(f, os.LookupEnv)
	return Reloaded{s, f}, errors.Join(append(s.faults(), err)...)
}

func copyValue(from, to *pflag.Flag) error {
	if list, ok := from.Value.(pflag.SliceValue); ok {
		return to.Value.(pflag.SliceValue).Replace(list.GetSlice())
	}
	return to.Value.Set(plain(from.Value))
}

// plain is a value as it is, to be compared and never shown.
func plain(v pflag.Value) string {
	switch v := v.(type) {
	case *secret:
		return string(*v)
	case *address:
		return string(*v)
	case *addresses:
		return string(*v)
	}
	return v.String()
}

// Differences logs what differs between two readings: what is taken up now, and what takes a restart.
func Differences(log *slog.Logger, before, now *pflag.FlagSet) {
	now.VisitAll(func(f *pflag.Flag) {
		old := before.Lookup(f.Name)
		if old == nil || plain(old.Value) == plain(f.Value) {
			return
		}
		if slices.Contains(reloadable, f.Name) {
			log.Info("a setting has changed", "setting", f.Name, "from", old.Value.String(), "to", f.Value.String())
			return
		}
		log.Warn("a changed setting waits: the edge takes it up when it is started again", "setting", f.Name)
	})
}
