package sidecar

import (
	"cmp"
	"log/slog"
	"math/rand/v2"
	"net"
	"net/url"
	"strings"
	"time"

	"github.com/agora-relay/agora"
	"github.com/agora-relay/agora/client"
	"github.com/agora-relay/agora/wire/p2p"
)

// Config sets up a sidecar. Agent and Client.URLs are required.
type Config struct {
	Agent   string        // address of the agent, http or https, which may have a path
	Client  client.Config // edges and credentials; the id is the name of the agent's card if it is empty
	Deliver string        // path of the agent to which messages and events are posted; they are refused if it is empty
	Admin   net.Listener  // of the API for the agent; none if nil. The sidecar owns it
	Token   string        // file of the token that the API asks for, read at each request; it asks for none if empty
	Peer    Peer
	Handoff Handoff
	Limits  Limits
	Log     *slog.Logger // discards if nil
}

// Peer says how the agent is a peer of libp2p.
type Peer struct {
	Listen  string   // HOST:PORT or a multiaddress of TCP; "none" to be reached through relays alone; DefaultListen if empty
	KeyFile string   // of its key, made if it is not there; a new key at each start if empty
	Relays  []string // whole multiaddresses; those that the edges name if nil
	Allow   []string // ids of peers that may ask the agent, whatever the cluster says of them
}

// DefaultListen is where a sidecar listens for peers where it is not told: other machines reach it through relays.
const DefaultListen = "/ip4/127.0.0.1/tcp/0"

// Handoff says how requests that are handed off are put to the agent. The zero value is as PROTOCOL.md says.
type Handoff struct {
	RawStringBody bool // input_data that is a string is sent as its text, not as JSON
	Slashes       bool // values of parameters of a path may have slashes, sent as %2F: see [p2p.Guard]
}

// Limits bounds what goes through a sidecar. The zero value is as PROTOCOL.md says.
type Limits struct {
	Card      time.Duration // until the agent has given its card
	Request   int           // bytes of a request that comes by libp2p
	Within    time.Duration // until such a request is complete
	FirstByte time.Duration // until the answer of the agent begins
	Idle      time.Duration // between two pieces of it
	Answer    int64         // bytes of it

	Deliver    time.Duration // until the answer to what is posted to Config.Deliver begins; 60s
	Whole      int           // bytes of an answer up to which a reply is whole; 512 KiB
	Keep       time.Duration // how long a message is tried again that the agent does not take; 10m
	Look       time.Duration // between looks at the agent's card and at the edges; 30s
	Lasts      time.Duration // how long edges know the peer without being told again; 90s
	Grace      time.Duration // how long requests in progress have at the end; 10s
	Retry      time.Duration // before what has failed is tried again the first time; doubled up to 10s each further time; 200ms
	Concurrent int           // requests that the agent has to answer at a time, those of peers of libp2p up to half of them, of which one peer has 7/8 at most; 128
	Held       int           // messages in hand, taken or not; 256
	Streams    int           // streams of libp2p at a time, of which one peer has 7/8 at most; 256
}

func (l Limits) withDefaults() Limits {
	l.Card = cmp.Or(l.Card, p2p.CardTime)
	l.Request = cmp.Or(l.Request, p2p.MaxRequest)
	l.Within = cmp.Or(l.Within, p2p.RequestTime)
	l.FirstByte = cmp.Or(l.FirstByte, p2p.FirstByteTime)
	l.Idle = cmp.Or(l.Idle, p2p.IdleTime)
	l.Answer = cmp.Or(l.Answer, p2p.MaxAnswer)
	l.Deliver = cmp.Or(l.Deliver, time.Minute)
	l.Whole = cmp.Or(l.Whole, 512<<10)
	l.Keep = cmp.Or(l.Keep, 10*time.Minute)
	l.Look = cmp.Or(l.Look, 30*time.Second)
	l.Lasts = cmp.Or(l.Lasts, 90*time.Second)
	l.Grace = cmp.Or(l.Grace, 10*time.Second)
	l.Retry = cmp.Or(l.Retry, 200*time.Millisecond)
	l.Concurrent = cmp.Or(l.Concurrent, 128)
	l.Held = cmp.Or(l.Held, 256)
	l.Streams = cmp.Or(l.Streams, 256)
	return l
}

// maxRetry bounds how long is waited between attempts.
const maxRetry = 10 * time.Second

// after returns how long to wait before attempt n, from 1: less up to a half by chance.
func (l *Limits) after(n int) time.Duration {
	d := max(l.Retry, min(l.Retry<<min(n-1, 16), maxRetry))
	return d - rand.N(d/2+1)
}

// agentURL returns the address of the agent.
func (c *Config) agentURL() (*url.URL, error) {
	u, err := url.Parse(c.Agent)
	switch {
	case err != nil:
		return nil, agora.Errorf(agora.InvalidRequest, "the agent's address %q is none", c.Agent)
	case u.Scheme != "http" && u.Scheme != "https", u.Host == "":
		return nil, agora.Errorf(agora.InvalidRequest, "the agent's address %q is none of http:// or https://", c.Agent)
	case u.User != nil, u.RawQuery != "", u.Fragment != "":
		return nil, agora.Errorf(agora.InvalidRequest, "the agent's address may have a path, but neither credentials nor a query")
	}
	return u, nil
}

// deliverURL returns where messages are posted to; nil where they are not. A query is kept.
func (c *Config) deliverURL(agent *url.URL) (*url.URL, error) {
	if c.Deliver == "" {
		return nil, nil
	}
	u, err := url.Parse(c.Deliver)
	if err != nil || u.IsAbs() || u.Host != "" || u.Fragment != "" || !strings.HasPrefix(c.Deliver, "/") {
		return nil, agora.Errorf(agora.InvalidRequest, "%q is no path of the agent: it must begin with a slash", c.Deliver)
	}
	at := agent.JoinPath(u.EscapedPath())
	at.RawQuery = u.RawQuery
	return at, nil
}

// edgeURLs returns the addresses of the edges as they are asked by HTTP: without the path of their WebSocket.
func edgeURLs(all []string) []string {
	var at []string
	for _, raw := range all {
		u, err := url.Parse(strings.TrimSpace(raw))
		if err != nil {
			continue // the client says so
		}
		switch u.Scheme {
		case "ws":
			u.Scheme = "http"
		case "wss":
			u.Scheme = "https"
		}
		u.RawQuery, u.Path = "", strings.TrimSuffix(strings.TrimSuffix(u.Path, "/"), "/ws")
		at = append(at, u.String())
	}
	return at
}
