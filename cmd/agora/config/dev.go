package config

import (
	"errors"
	"fmt"
	"net"
	"strconv"

	"github.com/spf13/pflag"
)

// Dev are the flags of `agora dev`.
type Dev struct {
	Settings
	Edges           int
	Addr, AdminAddr string
	Data            string
	Port            int
	Auth            authSettings
}

// Flags defines every flag of o, defaults included.
func (o *Dev) Flags(f *pflag.FlagSet) {
	FileFlag(f)
	f.IntVar(&o.Edges, "edges", 1, "how many edges")
	f.StringVar(&o.Addr, "addr", "127.0.0.1:8080", "where agents connect; port 0 is any free one")
	f.StringVar(&o.AdminAddr, "admin-addr", DefaultAdmin, "where /healthz, /readyz, /metrics and what operators ask are")
	f.IntVar(&o.Port, "port", 0, "first of the ports: edge k has agents at PORT+k, operators at PORT+100+k, gRPC at PORT+200+k and libp2p at PORT+300+k, but for addresses that are given; 0 for the defaults of these")
	f.StringVar(&o.Data, "data", "", "folder that keeps the log; without it the log ends with the process")
	o.Auth.flags(f, "none", "")
	o.dial.flags(f, nil)
	o.IAT.resolveFlag(f, true)
	o.Settings.flags(f)
	o.Server.loopback = true
}

// Shift has the ports that are not given begin at Port. given reports whether a setting is.
func (o *Dev) Shift(given func(string) bool) {
	if o.Port == 0 {
		return
	}
	for i, a := range [...]struct {
		name string
		addr *string
	}{{"addr", &o.Addr}, {"admin-addr", &o.AdminAddr}, {"grpc-addr", &o.AIP.addr}, {"p2p-addr", &o.P2P.addr}} {
		if !given(a.name) {
			*a.addr = net.JoinHostPort("127.0.0.1", strconv.Itoa(o.Port+100*i))
		}
	}
}

// Check returns what makes no sense; authSaid says that --auth was given, and is not the default.
func (o *Dev) Check(authSaid bool) error {
	all := append(o.faults(), o.Auth.faults()...)
	all = append(all, unless(!o.Auth.has("mtls") || o.Server.TLS.ClientCA != "", "auth mtls needs tls.cert, tls.key and tls.client-ca"))
	if o.Port < 0 || o.Port > 1<<16-400 {
		all = append(all, errors.New("port must be 1 to 65136"))
	}
	if o.Edges < 1 {
		all = append(all, errors.New("edges must be at least 1"))
	}
	for _, addr := range []string{o.Addr, o.AIP.Place(), o.P2P.Place()} {
		if o.Auth.choice == "none" && !authSaid && addr != "" && !IsLoopback(addr) {
			all = append(all, fmt.Errorf("%s can be reached by others: give --auth file:PATH, or --auth none if everybody may be any agent", addr))
		}
	}
	return errors.Join(all...)
}
