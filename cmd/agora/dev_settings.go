package main

import (
	"errors"
	"fmt"

	"github.com/spf13/pflag"
)

// devOptions are the flags of `agora dev`.
type devOptions struct {
	settings
	edges           int
	addr, adminAddr string
	data            string
	auth            authSettings
}

// flags defines every flag of o, defaults included.
func (o *devOptions) flags(f *pflag.FlagSet) {
	fileFlag(f)
	f.IntVar(&o.edges, "edges", 1, "how many edges")
	f.StringVar(&o.addr, "addr", "127.0.0.1:8080", "where agents connect; port 0 is any free one")
	f.StringVar(&o.adminAddr, "admin-addr", defaultAdmin, "where /healthz, /readyz, /metrics and what operators ask are")
	f.StringVar(&o.data, "data", "", "folder that keeps the log; without it the log ends with the process")
	o.auth.flags(f, "none", "")
	o.dial.flags(f, nil)
	o.iat.resolveFlag(f, true)
	o.settings.flags(f)
}

// check returns what makes no sense; authSaid says that --auth was given, and is not the default.
func (o *devOptions) check(authSaid bool) error {
	all := append(o.faults(), o.auth.faults()...)
	all = append(all, unless(!o.auth.has("mtls") || o.server.tls.clientCA != "", "auth mtls needs tls.cert, tls.key and tls.client-ca"))
	if o.edges < 1 {
		all = append(all, errors.New("edges must be at least 1"))
	}
	for _, addr := range []string{o.addr, o.aip.place(), o.p2p.place()} {
		if o.auth.choice == "none" && !authSaid && addr != "" && !isLoopback(addr) {
			all = append(all, fmt.Errorf("%s can be reached by others: give --auth file:PATH, or --auth none if everybody may be any agent", addr))
		}
	}
	return errors.Join(all...)
}
