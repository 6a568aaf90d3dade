package config

import (
	"fmt"
	"log/slog"
	"time"

	"github.com/spf13/pflag"

	"github.com/agora-relay/agora/edge/p2p"
)

// p2pSettings are those of the libp2p door.
type p2pSettings struct {
	addr        string
	Key         string
	ClusterKey  secret
	announce    []string
	allow       []string
	connections int

	relay        onOff
	reservations int
	perIP        int
	circuits     int
	data         size
	duration     time.Duration

	request, answer size
	firstByte, idle time.Duration
}

// defaultP2P is where an edge speaks libp2p unless it is told otherwise.
const defaultP2P = "127.0.0.1:9000"

func (s *p2pSettings) flags(f *pflag.FlagSet) {
	f.StringVar(&s.addr, "p2p-addr", defaultP2P, "where peers of libp2p connect, by TCP and by WebSocket: HOST:PORT or /ip4/HOST/tcp/PORT; port 0 is any free one, none no such port")
	f.StringVar(&s.Key, "p2p.key", "", "file of the key that makes the edge's peer id, made where it is missing; a new key at each start if empty")
	f.Var(&s.ClusterKey, "p2p.cluster-key", "at least 32 characters, the same at every edge and nobody else's, of which the keys are derived by which agents of other dialects are peers of libp2p; they are none if empty; better given by environment or file")
	f.StringSliceVar(&s.announce, "p2p.announce", nil, "multiaddresses (/dns4/HOST/tcp/PORT) at which peers are told that this edge is reached; where it listens if empty")
	f.StringSliceVar(&s.allow, "p2p.allow", nil, "ids of peers that may ask and use the relay though no registration has bound them to an agent")
	f.IntVar(&s.connections, "p2p.connections", 4096, "connections of peers of libp2p that one edge lets in; an eighth as many more, 1,024 at most, are for peers that are bound to nobody, of which the one that has been there longest makes room")
	s.relay = true
	f.Var(&s.relay, "p2p.relay", "relay circuits to peers that reserve a place at an edge")
	f.IntVar(&s.reservations, "p2p.relay.reservations", 4096, "peers that may have reserved a place at one edge")
	f.IntVar(&s.perIP, "p2p.relay.reservations-per-ip", 256, "those of them from one IP address")
	f.IntVar(&s.circuits, "p2p.relay.circuits", 64, "circuits of one peer at one edge, in either direction")
	s.data = 64 << 20
	f.Var(&s.data, "p2p.relay.data", "bytes of one circuit, each way")
	f.DurationVar(&s.duration, "p2p.relay.duration", 10*time.Minute, "how long a circuit lasts at most")
	s.request, s.answer = 16<<20, 64<<20
	f.Var(&s.request, "handoff.request", "size of a request that is handed off by libp2p")
	f.DurationVar(&s.firstByte, "handoff.first-byte", 10*time.Second, "how long the answer to a handoff by libp2p may take to begin")
	f.DurationVar(&s.idle, "handoff.idle", time.Minute, "how long it may take to go on")
	f.Var(&s.answer, "handoff.answer", "size of the answer")
}

// On reports whether there is such a door.
func (s *p2pSettings) On() bool { return s.addr != "" && s.addr != "none" }

// Place returns where the door's port is; empty for none.
func (s *p2pSettings) Place() string {
	if !s.On() {
		return ""
	}
	if at, err := p2p.HostPort(s.addr); err == nil {
		return at
	}
	return s.addr
}

func (s *p2pSettings) faults() []error {
	all := []error{
		unless(s.ClusterKey == "" || len(s.ClusterKey) >= 32, "p2p.cluster-key must have at least 32 characters"),
		unless(s.data >= 64<<10, "p2p.relay.data must be at least 64KiB"),
		unless(s.duration >= time.Second && s.duration <= 24*time.Hour, "p2p.relay.duration must be 1s to 24h"),
		unless(s.request >= 1<<10 && s.request <= 256<<20, "handoff.request must be 1KiB to 256MiB"),
		unless(s.answer >= 1<<10, "handoff.answer must be at least 1KiB"),
		unless(s.firstByte > 0, "handoff.first-byte must be more than nothing"),
		unless(s.idle > 0, "handoff.idle must be more than nothing"),
	}
	for name, n := range map[string]int{
		"p2p.connections": s.connections, "p2p.relay.reservations": s.reservations, "p2p.relay.reservations-per-ip": s.perIP, "p2p.relay.circuits": s.circuits,
	} {
		all = append(all, unless(n >= 1, name+" must be at least 1"))
	}
	if _, err := p2p.HostPort(s.addr); s.On() && err != nil {
		all = append(all, fmt.Errorf("p2p-addr: want HOST:PORT, :PORT, /ip4/HOST/tcp/PORT or none, not %q", s.addr))
	}
	for _, text := range s.announce {
		_, err := p2p.ParseAddress(text)
		all = append(all, unless(err == nil, fmt.Sprintf("p2p.announce: %q is no multiaddress such as /dns4/HOST/tcp/PORT", text)))
	}
	for _, text := range s.allow {
		_, err := p2p.ParsePeer(text)
		all = append(all, unless(err == nil, fmt.Sprintf("p2p.allow: %q is no peer id", text)))
	}
	return all
}

// PeerKeys are what makes an edge a peer, and agents of other dialects.
type PeerKeys struct {
	File    string // of the edge's key; a new one if empty
	Cluster []byte // nil for none
}

// P2PDoor returns how the libp2p door of an edge is set up, but for what it shares with other doors.
func (s *Settings) P2PDoor(at string, keys PeerKeys, log *slog.Logger) (p2p.Config, error) {
	c := p2p.Config{
		ClusterKey: keys.Cluster, Connections: s.P2P.connections, Pages: s.Server.Pages(), Log: log,
		Relay: p2p.Relay{
			Off: !bool(s.P2P.relay), Reservations: s.P2P.reservations, PerIP: s.P2P.perIP, Circuits: s.P2P.circuits,
			Data: int64(s.P2P.data), Duration: s.P2P.duration,
		},
		Handoff: p2p.Handoff{Request: int(s.P2P.request), FirstByte: s.P2P.firstByte, Idle: s.P2P.idle, Answer: int64(s.P2P.answer)},
	}
	for _, text := range s.P2P.allow {
		id, err := p2p.ParsePeer(text)
		if err != nil {
			return c, err
		}
		c.Allow = append(c.Allow, id)
	}
	for _, text := range s.P2P.announce {
		a, err := p2p.ParseAddress(text)
		if err != nil {
			return c, err
		}
		c.Announce = append(c.Announce, a)
	}
	var err error
	if c.Listen, err = p2p.ListenAt(at); err != nil {
		return c, fmt.Errorf("p2p-addr: %w", err)
	}
	if keys.File == "" {
		c.Key, err = p2p.NewKey()
	} else {
		c.Key, err = p2p.KeyIn(keys.File)
	}
	if err != nil {
		return c, fmt.Errorf("p2p.key: %w", err)
	}
	if keys.Cluster == nil {
		log.Info("agents of other dialects are no peers of libp2p: p2p.cluster-key is not set")
	}
	return c, nil
}
