package edge

import (
	"cmp"
	"crypto/rand"
	"log/slog"
	"time"

	"github.com/agora-relay/agora/broker"
	"github.com/agora-relay/agora/edge/admission"
	"github.com/agora-relay/agora/edge/approval"
	"github.com/agora-relay/agora/edge/dial"
	"github.com/agora-relay/agora/edge/policy"
	"github.com/agora-relay/agora/internal/trace"
	"github.com/agora-relay/agora/presence"
)

// Config sets up a Node. A zero value means the default that its comment names.
type Config struct {
	ID       string          // of the edge; random
	Broker   *broker.Broker  // required; used, not owned
	Presence *presence.Store // required; used, not owned
	Auth     Authenticator   // required

	Lease     time.Duration // how long an edge that is silent holds its sessions, the same at all edges: Presence's own is set to it; 10s
	Compare   time.Duration // between two comparisons of a tenant's directory with presence; 30s. For tests
	Search    time.Duration // from presence being whole again to looking through the log for what it had lost; two leases and up to one more. For tests
	Heartbeat time.Duration // session.heartbeat: between signs of life to a quiet agent; 30s
	Timeout   time.Duration // session.timeout: a connection silent for so long is dead; 60s
	Confirm   time.Duration // between pings while frames are unconfirmed; 1.5s
	Answer    time.Duration // how long presence has for what a message waits for, before its agent hears that it can't be reached; 3s
	Patience  time.Duration // how long an agent that speaks through another edge waits for the holder of its session; 5s
	Probe     time.Duration // how long the connection that holds an id has for a sign of life before a newcomer gets the id; 1s

	MailboxOff     bool                // mailbox off: an agent without a session is AGENT_OFFLINE
	MaxAge         time.Duration       // mailbox.max-age; 10m
	MaxRecords     int64               // mailbox.max-records; 4096
	NoAutoCreate   bool                // spaces.auto-create off
	DeltaThreshold int                 // spaces.delta-threshold: bytes of a published text beyond which it goes out in deltas; 16 KiB
	Doubt          time.Duration       // how long a call that is not known to be asked is asked again without a look for it; 45s. For tests
	Register       time.Duration       // register.ttl: how long a registration without a connection lasts that does not say so itself; 1h
	WholeRoster    int                 // spaces.whole-roster: members of a space up to which each change names all of them; 256
	Depth          int                 // limits.depth: nesting of a frame, itself counted; 64
	Moving         Moving              // how fast agents are told to go to other edges
	Limits         admission.Limits    // at the start: see [Node.SetLimits]
	Policy         *policy.Policy      // who may do what: after other rules were set, Reconsider is to be called; everybody everything if nil
	Dialer         *dial.Dialer        // what doors dial agents with; one that denies link-local addresses if nil
	Proxies        *Proxies            // whose word is taken about where connections come from; nobody if nil
	Approvals      *approval.Approvals // what agents ask approval for; nobody can if nil. Used, not owned
	Tracer         *trace.Tracer       // makes spans of messages; none if nil. Used, not owned
	Log            *slog.Logger        // discards if nil

	// Superseded is told, at most once, that another edge that lives has taken this one's id and lease: this one is to
	// be drained and closed. It must not block. Nothing is told if nil; either way the node serves no agent when its
	// lease is over.
	Superseded func(error)
}

func (c Config) withDefaults() Config {
	c.ID = cmp.Or(c.ID, "edge-"+rand.Text()[:8])
	c.Lease = cmp.Or(c.Lease, 10*time.Second)
	c.Depth = cmp.Or(c.Depth, 64)
	c.Heartbeat = cmp.Or(c.Heartbeat, 30*time.Second)
	c.Timeout = cmp.Or(c.Timeout, time.Minute)
	c.Confirm = cmp.Or(c.Confirm, 1500*time.Millisecond)
	c.Probe = cmp.Or(c.Probe, time.Second)
	c.Patience = cmp.Or(c.Patience, 5*time.Second)
	c.Answer = cmp.Or(c.Answer, 3*time.Second)
	c.MaxAge = cmp.Or(c.MaxAge, 10*time.Minute)
	c.MaxRecords = cmp.Or(c.MaxRecords, 4096)
	c.Moving = c.Moving.withDefaults()
	c.Register = cmp.Or(c.Register, time.Hour)
	c.Limits = c.Limits.WithDefaults()
	c.Log = cmp.Or(c.Log, slog.New(slog.DiscardHandler))
	if c.Policy == nil {
		c.Policy = new(policy.Policy)
	}
	if c.Dialer == nil {
		c.Dialer = dial.New(dial.Config{})
	}
	if c.Proxies == nil {
		c.Proxies = new(Proxies)
	}
	if c.Superseded == nil {
		c.Superseded = func(error) {}
	}
	return c
}
