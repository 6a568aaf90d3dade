package client

import (
	"cmp"
	"context"
	"crypto/tls"
	"encoding/json"
	"log/slog"
	"math/rand/v2"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/agora-relay/agora"
	"github.com/agora-relay/agora/internal/rawjson"
	"github.com/agora-relay/agora/wire"
)

// Config sets up a client. URLs are required; the zero value of everything else works.
type Config struct {
	URLs  []string // WebSocket addresses of edges, tried in random order; one without a path gets /ws, and http is as good as ws
	Agent string   // the id to be; empty: nobody, who may only list agents and spaces
	Token string   // sent in the Authorization header, never in the URL
	// TokenSource gives the token instead, for those that end: a connection continues with the next one
	// before the last one ends, and one that was refused is tried with another for as long as Patience.
	TokenSource TokenSource
	Card        Card // what the directory says of the agent

	LastSeq uint64 // position in the mailbox after which delivery continues; 0: the server knows
	State   State  // keeps positions for the next start; nil: none are kept

	Backoff     Backoff                      //
	OnGap       func(Gap)                    // told what may be lost; must not block; nil: only logged
	OnStatus    func(Status)                 // told when the connection is made, is lost and could not be made again, one at a time; must not block; nil: only logged
	MaxPending  int                          // bytes sent and not yet receipted, beyond which sending blocks; 1 MiB
	MaxBuffered int                          // bytes received and not yet taken, beyond which reading stops; 4 MiB
	Patience    time.Duration                // how long what the edge refuses for the moment is sent again before it fails with UNAVAILABLE; 30s
	Traceparent func(context.Context) string // the traceparent of the span in a context, as OpenTelemetry's propagation.TraceContext injects it: goes with what is sent under that context; nil: none does
	MaxFrame    int                          // bytes of a frame that is taken, from 4096: in the place of what would come in a larger one comes a Gap, and its sender is told; 64 MiB, more than an edge sends by default
	Stall       time.Duration                // how long an unread stream may hold up the others; 30s
	Handlers    int                          // messages that Handle has in hand at a time; 16

	Dial   Dialer       // opens the sockets; nil: net.Dialer
	TLS    *tls.Config  // for wss; nil: the system's
	Header http.Header  // sent with the handshake besides Authorization
	Log    *slog.Logger // discards if nil
}

// Dialer opens a TCP connection, as [net.Dialer.DialContext] does. It ends when ctx does.
type Dialer func(ctx context.Context, network, addr string) (net.Conn, error)

// Card is what an agent says of itself.
type Card struct {
	Name         string          // for people; the id if empty
	Type         string          // any word, such as "process"
	Capabilities []string        // any words
	Metadata     json.RawMessage // a JSON object, or nil
	Endpoint     string          // where it can be reached besides
	Domain       string          // that it works in
	Description  string          // for people, and for who looks for an agent
	Skills       []agora.Skill   // what it can do when it is asked
	Tools        []agora.Skill   // what it offers to be called by name
}

// Backoff is how long to wait between attempts to connect: Min doubled each
// time up to Max, less up to a half by chance.
type Backoff struct {
	Min time.Duration // 100ms
	Max time.Duration // 10s
}

// after returns the wait before attempt n, from 0.
func (b Backoff) after(n int) time.Duration {
	d := min(b.Min<<min(n, 20), b.Max)
	return d - rand.N(d/2+1)
}

// Positions are how far a client has acknowledged its mailbox and its spaces.
type Positions struct {
	LastSeq uint64            `json:"last_seq"`
	Spaces  map[string]uint64 `json:"spaces,omitempty"`
}

// State keeps positions, so that a program that is started again continues after
// the last message it was done with, and in spaces it joins again. Save is
// called at most once a second, and at the end; it is never called twice at a time.
type State interface {
	Load(ctx context.Context) (Positions, error)
	Save(ctx context.Context, p Positions) error
}

// Gap says what may be lost: positions of the mailbox, or of a space, or the
// beginning of one stream, which was acknowledged before the program started again.
type Gap struct {
	Space          string // empty: the mailbox
	FromSeq, ToSeq uint64
	From, StreamID string // set when only the beginning of that stream is missing
}

func (c Config) withDefaults() Config {
	c.Backoff.Min = cmp.Or(c.Backoff.Min, 100*time.Millisecond)
	c.Backoff.Max = max(cmp.Or(c.Backoff.Max, 10*time.Second), c.Backoff.Min)
	c.MaxPending = cmp.Or(c.MaxPending, 1<<20)
	c.MaxBuffered = cmp.Or(c.MaxBuffered, 4<<20)
	if c.MaxFrame > 0 {
		c.MaxFrame = max(c.MaxFrame, wire.MinMaxFrame)
	}
	c.Patience = cmp.Or(c.Patience, 30*time.Second)
	c.Stall = cmp.Or(c.Stall, 30*time.Second)
	c.Handlers = cmp.Or(c.Handlers, 16)
	c.Log = cmp.Or(c.Log, slog.New(slog.DiscardHandler))
	if c.OnGap == nil {
		c.OnGap = func(Gap) {}
	}
	if c.OnStatus == nil {
		c.OnStatus = func(Status) {}
	}
	return c
}

// schemes are those of addresses, by what may be written for them.
var schemes = map[string]string{"ws": "ws", "wss": "wss", "http": "ws", "https": "wss"}

// addresses returns the URLs as they are dialled, in random order.
func (c Config) addresses() ([]string, error) {
	var all []string
	for _, raw := range c.URLs {
		u, err := url.Parse(strings.TrimSpace(raw))
		if err != nil || u.Host == "" || schemes[u.Scheme] == "" {
			return nil, agora.Errorf(agora.InvalidRequest, "%q is no ws:// or wss:// address", raw)
		}
		u.Scheme = schemes[u.Scheme]
		if u.Path == "" || u.Path == "/" {
			u.Path = "/ws"
		}
		all = append(all, u.String())
	}
	if len(all) == 0 {
		return nil, agora.Errorf(agora.InvalidRequest, "no address of an edge is given")
	}
	rand.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	return all, nil
}

// agent returns the card as it is registered: name and endpoint stand in the
// metadata, where they are not there already.
func (c Config) agent() (*wire.Agent, error) {
	if _, err := agora.ParseOwnID(c.Agent); err != nil {
		return nil, err
	}
	meta := c.Card.Metadata
	if meta != nil && (!isObject(meta) || !json.Valid(meta)) {
		return nil, agora.Errorf(agora.InvalidRequest, "metadata is no JSON object")
	}
	for _, m := range [...]struct{ key, value string }{{"endpoint", c.Card.Endpoint}, {"name", c.Card.Name}} {
		if _, there := member(meta, m.key); m.value != "" && !there {
			meta = withMember(meta, m.key, rawjson.AppendString(nil, m.value))
		}
	}
	return &wire.Agent{
		ID: c.Agent, Type: c.Card.Type, Capabilities: c.Card.Capabilities, Metadata: meta,
		Domain: c.Card.Domain, Description: c.Card.Description, Skills: wireSkills(c.Card.Skills), Tools: wireSkills(c.Card.Tools),
	}, nil
}
