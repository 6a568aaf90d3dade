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
	f.StringVar(&a.tokenFile, "admin.token-file", "", "file of the token that operators' requests to the admin port must bear; without it they are answered from the same machine, container or pod alone, over loopback")
	f.BoolVar(&a.pprof, "admin.pprof", false, "serve profiles of the process at /debug/pprof of the admin port")
}

// defaultAdmin is where an edge has its admin port unless it is told otherwise.
const defaultAdmin = "127.0.0.1:9100"
