package config

import (
	"errors"
	"fmt"
	"log/slog"
	"os"
	"strings"
)

// secretFile is a file of a secret, and the setting that names it.
type secretFile struct{ setting, path string }

// secretFiles returns the files of secrets that the settings name.
func (s *Settings) secretFiles() []secretFile {
	return []secretFile{
		{"tls.key", s.Server.TLS.Key}, {"admin.tls.key", s.Server.Admin.Key}, {"admin.token-file", s.Admin.TokenFile},
		{"p2p.key", s.P2P.Key}, {"aip.node-tls.key", s.AIP.NodeTLS.key},
	}
}

// secretFiles returns those by which others are let in.
func (a *authSettings) secretFiles() []secretFile {
	all := []secretFile{{"auth.jwt.secret-file", a.secretFile}}
	for _, way := range a.Config(nil).Ways {
		if path, is := strings.CutPrefix(way, "file:"); is {
			all = append(all, secretFile{"auth", path})
		}
	}
	return all
}

// secretFiles returns all files of secrets of an edge.
func (o *Edge) secretFiles() []secretFile {
	all := append(o.Settings.secretFiles(), o.Auth.secretFiles()...)
	return append(all,
		secretFile{"nats.creds", o.NATS.creds}, secretFile{"nats.nkey", o.NATS.nkey}, secretFile{"nats.tls.key", o.NATS.key}, secretFile{"redis.tls.key", o.Redis.key},
	)
}

// exposed is Exposed, and names the setting.
func (f secretFile) exposed() error {
	if err := Exposed(f.path); err != nil {
		return fmt.Errorf("%s: %w, or insist by auth.allow-readable", f.setting, err)
	}
	return nil
}

// Exposed returns what says that every user of the machine can read or change a file of a secret; nil where that is not
// so, or path is empty. The group's rights say nothing: by its group a service that runs as another user is given the
// file, in Kubernetes as elsewhere. What is no file, as a pipe, has no such rights.
func Exposed(path string) error {
	if path == "" {
		return nil
	}
	info, err := os.Stat(path)
	if err != nil || !info.Mode().IsRegular() { // who reads it says what is wrong
		return nil
	}
	if mode := info.Mode().Perm(); modesTell && mode&0o006 != 0 {
		return fmt.Errorf("every user of this machine can read or change %s (mode %04o): chmod o-rw", path, mode)
	}
	return nil
}

// CheckReadable returns which files of secrets every user of the machine can read or change, unless the settings insist
// on that.
func (o *Edge) CheckReadable() error {
	if o.Auth.allowReadable {
		return nil
	}
	var all []error
	for _, f := range o.secretFiles() {
		all = append(all, f.exposed())
	}
	return errors.Join(all...)
}

// WarnReadable warns of files of secrets that every user of the machine can read or change, unless the settings insist
// on that: what is tried out is no cluster of others yet.
func (o *Dev) WarnReadable(log *slog.Logger) {
	if o.Auth.allowReadable {
		return
	}
	for _, f := range append(o.Settings.secretFiles(), o.Auth.secretFiles()...) {
		if err := f.exposed(); err != nil {
			log.Warn("every user of this machine can read a secret, with which an edge would not start", "err", err)
		}
	}
}
