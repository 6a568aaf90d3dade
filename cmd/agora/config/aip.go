package config

import (
	"errors"
	"fmt"
	"log/slog"
	"net"
	"regexp"
	"time"

	"github.com/spf13/pflag"

	"github.com/agora-relay/agora/edge/aip"
	"github.com/agora-relay/agora/edge/dial"
)

// aipSettings are those of the AIP door.
type aipSettings struct {
	addr        string
	advertise   string
	maxMessage  size
	dialTimeout time.Duration
	heartbeat   time.Duration
	stopWait    time.Duration
	links       []string
	gatewayID   string
	NodeTLS     nodeTLSSettings
	nodes       int
}

func (s *aipSettings) flags(f *pflag.FlagSet) {
	f.StringVar(&s.addr, "grpc-addr", defaultGRPC, "where agents of the AIP dialect connect, by gRPC, with the TLS of the public port; port 0 is any free one, none no such port")
	f.StringVar(&s.advertise, "aip.advertise", "", "HOST:PORT at which AIP nodes are told that agents of other dialects are reached: this edge's grpc-addr, or a balancer; grpc-addr if empty")
	s.maxMessage = 16 << 20
	f.Var(&s.maxMessage, "aip.max-message", "size of a message of a session or tool call of AIP")
	f.DurationVar(&s.dialTimeout, "aip.dial-timeout", 5*time.Second, "how long an AIP node may take to be connected to")
	f.DurationVar(&s.heartbeat, "aip.heartbeat-timeout", 30*time.Second, "an AIP node without a heartbeat or a call for so long is deregistered")
	f.DurationVar(&s.stopWait, "aip.stop-wait", 30*time.Second, "how long a session with an agent of another dialect, once stopped, waits for its first answer")
	f.StringSliceVar(&s.links, "aip.link", nil, "addresses (HOST:PORT) of AIP gateways of others whose nodes are listed and reached here; agora link adds more")
	f.StringVar(&s.gatewayID, "aip.gateway-id", "", "names this cluster to the gateways that it is linked to, and must be no other's; the same at every edge; made by the cluster if empty")
	s.NodeTLS.flags(f)
	f.IntVar(&s.nodes, "limits.nodes", 1024, "AIP nodes that one principal may have registered at one edge")
}

// defaultGRPC is where an edge speaks gRPC unless it is told otherwise.
const defaultGRPC = "127.0.0.1:50000"

// on reports whether there is such a door.
func (s *aipSettings) on() bool { return s.addr != "" && s.addr != "none" }

// Place returns where the door's port is; empty for none.
func (s *aipSettings) Place() string {
	if s.on() {
		return s.addr
	}
	return ""
}

func (s *aipSettings) faults() []error {
	all := []error{
		unless(s.maxMessage >= 64<<10 && s.maxMessage <= 256<<20, "aip.max-message must be 64KiB to 256MiB"),
		unless(s.dialTimeout > 0 && s.dialTimeout <= time.Minute, "aip.dial-timeout must be more than nothing, and 1m at most"),
		unless(s.heartbeat >= time.Second, "aip.heartbeat-timeout must be at least 1s"),
		unless(s.stopWait > 0, "aip.stop-wait must be more than nothing"),
		unless(gatewayID.MatchString(s.gatewayID), "aip.gateway-id can't be more than 64 letters, digits, dots, dashes and underscores"),
		unless(s.nodes >= 1, "limits.nodes must be at least 1"),
		unless(s.on() || len(s.links) == 0, "aip.link needs grpc-addr"),
		s.NodeTLS.faults(), s.placeFault(),
	}
	for _, at := range s.links {
		if _, err := dial.Canonical(at); err != nil {
			all = append(all, fmt.Errorf("aip.link: want HOST:PORT, not %q", at))
		}
	}
	return all
}

var gatewayID = regexp.MustCompile(`^[A-Za-z0-9._-]{0,64}$`)

// placeFault returns what is wrong with where the door is, and is said to be.
func (s *aipSettings) placeFault() (err error) {
	if _, fault := PlusPort(s.addr, 0); s.on() && fault != nil {
		err = fmt.Errorf("grpc-addr: want HOST:PORT, :PORT or none, not %q", s.addr)
	}
	host, _, fault := net.SplitHostPort(s.advertise)
	if _, number := PlusPort(s.advertise, 0); s.advertise != "" && (fault != nil || number != nil || host == "") {
		err = errors.Join(err, fmt.Errorf("aip.advertise: want HOST:PORT, not %q", s.advertise))
	}
	return err
}

// checkFiles returns what is wrong with the files that are named.
func (s *aipSettings) checkFiles() error {
	_, err := s.NodeTLS.Open()
	return err
}

// AIPDoor returns how the AIP door of an edge is set up, but for what it shares with other doors.
func (s *Settings) AIPDoor(log *slog.Logger) aip.Config {
	return aip.Config{
		Advertise: s.AIP.advertise, MaxMessage: int(s.AIP.maxMessage), MaxHeader: int(s.Server.MaxHeader),
		DialTimeout: s.AIP.dialTimeout, HeartbeatTimeout: s.AIP.heartbeat, StopWait: s.AIP.stopWait,
		Links: s.AIP.links, GatewayID: s.AIP.gatewayID, Pages: s.Server.Pages(), Log: log,
	}
}
