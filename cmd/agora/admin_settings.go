package main

import (
	"github.com/spf13/pflag"
)

// adminSettings are those of the admin port, beside its address.
type adminSettings struct {
	tokenFile string
	pprof     bool
}

func (a *adminSettings) flags(f *pflag.FlagSet) {
	f.StringVar(&a.tokenFile, "admin.token-file", "", "file of the token that operators' requests to the admin port must bear; without it they are answered on loopback alone")
	f.BoolVar(&a.pprof, "admin.pprof", false, "serve profiles of the process at /debug/pprof of the admin port")
}

// gate returns what lets operators' requests in at a port.
func (a *adminSettings) gate(p *port) gate {
	return gate{tokenFile: a.tokenFile, loopback: isLoopback(p.listener.Addr().String())}
}
