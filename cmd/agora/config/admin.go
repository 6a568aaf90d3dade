package config

import (
	"github.com/spf13/pflag"
)

// Admin are those of the admin port, beside its address.
type Admin struct {
	TokenFile string
	Pprof     bool
}

func (a *Admin) Flags(f *pflag.FlagSet) {
	f.StringVar(&a.TokenFile, "admin.token-file", "", "file of the token that operators' requests to the admin port must bear; without it they are answered from the same machine, container or pod alone, over loopback")
	f.BoolVar(&a.Pprof, "admin.pprof", false, "serve profiles of the process at /debug/pprof of the admin port")
}

// DefaultAdmin is where an edge has its admin port unless it is told otherwise.
const DefaultAdmin = "127.0.0.1:9100"
