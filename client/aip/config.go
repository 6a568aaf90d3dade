package aip

import (
	"cmp"
	"context"
	"crypto/tls"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net"
	"strconv"
	"strings"
	"time"

	"github.com/agora-relay/agora"
)

// Config sets up an [Agent] or a [Toolbox]. ID is required; the zero value of everything else works.
type Config struct {
	ID       string   // unique among agents and toolboxes
	Gateways []string // HOST:PORT each, or several with commas; one of them is used at a time, in random order. They are edges of one cluster, or know each other
	Listen   string   // HOST:PORT to serve at; 127.0.0.1 and a free port if empty
	Address  string   // HOST:PORT that others dial, where it is not the one that is listened at

	Name        string // for people; the id if empty
	Domain      string // group of nodes
	Description string // for people, and for who looks for a node
	Version     string // of an agent
	Input       []Mode // kinds of content that it takes; the wire has no place for those of a toolbox
	Output      []Mode // kinds of content that it gives; as Input
	Skills      []*AgentSkill

	Token string // for gateways, in the metadata `authorization`; never sent to other nodes
	// TokenSource gives the token instead, for those that end. It is called for every call of a gateway, by several
	// goroutines, and must return when its context ends.
	TokenSource func(context.Context) (string, error)
	TLS         *tls.Config // to connect with; nil: no TLS
	ServeTLS    *tls.Config // to serve with; nil: no TLS

	MaxMessage      int           // bytes of a message, both ways; 16 MiB
	MaxSessions     int           // that an agent serves at a time, beyond which it refuses them with RESOURCE_EXHAUSTED; 1024
	RegisterTimeout time.Duration // how long a gateway may take to register a node, and to answer what is not a call between nodes; 5s
	Heartbeat       time.Duration // between signs of life, once registered; 10s
	Backoff         Backoff       // between attempts to register, once every gateway had one
	Grace           time.Duration // that Close gives to sessions and tools that are under way; 5s, none if negative

	OnStatus func(Status) // told when the node is registered, and when that is lost, one at a time; must neither block nor call the node; nil: only logged
	Log      *slog.Logger // discards if nil
}

// Status is how a registration stands.
type Status struct {
	Node    string // id
	Address string // where the node serves
	Gateway string // address of the gateway that has the registration, or of the one asked last
	Err     error  // why there is none; nil while there is one
}

// String says it in a sentence.
func (s Status) String() string {
	if s.Err != nil {
		return fmt.Sprintf("%s serves at %s and is not registered with %s: %v", s.Node, s.Address, s.Gateway, s.Err)
	}
	return fmt.Sprintf("%s serves at %s and is registered with %s", s.Node, s.Address, s.Gateway)
}

// Backoff is how long to wait between attempts: Min doubled each time up to Max, less up to a half by chance.
type Backoff struct {
	Min time.Duration // 100ms
	Max time.Duration // 5s
}

// after returns the wait before attempt n, from 0.
func (b Backoff) after(n int) time.Duration {
	d := min(b.Min<<min(n, 20), b.Max)
	return d - rand.N(d/2+1)
}

func (b Backoff) withDefaults() Backoff {
	b.Min = cmp.Or(b.Min, 100*time.Millisecond)
	b.Max = max(cmp.Or(b.Max, 5*time.Second), b.Min)
	return b
}

// What peers and gateways agree on.
const (
	defaultListen  = "127.0.0.1:0"
	defaultMessage = 16 << 20
	defaultGrace   = 5 * time.Second
	answerTime     = 5 * time.Second // for what is no call between nodes
)

func (c Config) withDefaults() Config {
	c.Listen = cmp.Or(c.Listen, defaultListen)
	c.Name = cmp.Or(c.Name, c.ID)
	c.MaxMessage = cmp.Or(c.MaxMessage, defaultMessage)
	c.MaxSessions = cmp.Or(c.MaxSessions, 1024)
	c.RegisterTimeout = cmp.Or(c.RegisterTimeout, answerTime)
	c.Heartbeat = cmp.Or(c.Heartbeat, 10*time.Second)
	c.Backoff = c.Backoff.withDefaults()
	c.Grace = cmp.Or(c.Grace, defaultGrace)
	c.Log = cmp.Or(c.Log, slog.New(slog.DiscardHandler))
	c.TokenSource = tokenSource(c.Token, c.TokenSource)
	if c.OnStatus == nil {
		c.OnStatus = func(Status) {}
	}
	return c
}

// check returns what is wrong with the configuration.
func (c Config) check() error {
	if _, err := agora.ParseOwnID(c.ID); err != nil {
		return err
	}
	if c.Address != "" {
		if err := checkAddress(c.Address); err != nil {
			return err
		}
	}
	_, err := addresses(c.Gateways)
	return err
}

// tokenSource returns what gives tokens; nil where there are none.
func tokenSource(token string, source func(context.Context) (string, error)) func(context.Context) (string, error) {
	if source == nil && token != "" {
		return func(context.Context) (string, error) { return token, nil }
	}
	return source
}

// addresses returns those of a list whose entries may be lists with commas, in random order.
func addresses(list []string) ([]string, error) {
	var all []string
	for _, entry := range list {
		for one := range strings.SplitSeq(entry, ",") {
			one = strings.TrimSpace(one)
			if err := checkAddress(one); err != nil {
				return nil, err
			}
			all = append(all, one)
		}
	}
	rand.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	return all, nil
}

// checkAddress returns an INVALID_REQUEST error for what is no HOST:PORT that can be dialled.
func checkAddress(s string) error {
	host, port, err := net.SplitHostPort(s)
	if n, bad := strconv.ParseUint(port, 10, 16); err != nil || bad != nil || n == 0 || host == "" || strings.Contains(host, "/") {
		return agora.Errorf(agora.InvalidRequest, "%q is no address HOST:PORT", s)
	}
	return nil
}

// advertised returns the address under which others reach what listens at an address: the one that is configured, else
// that one.
func advertised(configured string, at net.Addr) (string, error) {
	if configured != "" {
		return configured, nil
	}
	if tcp, ok := at.(*net.TCPAddr); ok && tcp.IP.IsUnspecified() {
		return "", agora.Errorf(agora.InvalidRequest, "nobody can dial %v: Config.Address says under which address others do", at)
	}
	return at.String(), nil
}
