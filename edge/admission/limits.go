package admission

import (
	"cmp"
	"sync/atomic"
)

// Limits bound what one agent may do, and all of an edge together. But for Frame, InFlight, Connections
// and Queued they may change while the edge runs: see [LiveLimits.Set].
type Limits struct {
	Frame    int     // limits.frame: bytes of one frame; 1 MiB
	Streams  int     // limits.streams: open streams of one agent; 1024
	Spaces   int     // limits.spaces: spaces of one agent; 256
	Calls    int     // limits.calls: calls open at this edge by one agent, or for one; 1024
	Card     int     // limits.card: bytes of what an agent says of itself, schemas included; 256 KiB
	InFlight int     // bytes that one connection may have under way before its socket is read no further; 1 MiB
	Rate     float64 // limits.rate: messages per second; no limit
	Bytes    float64 // limits.bytes: bytes per second; no limit
	Burst    float64 // limits.burst: seconds' worth of rates that may come at once, of agents, tenants and handshakes; 1

	PrincipalRate  float64 // limits.principal.rate: messages per second of all agents of a principal at this edge; principalTimes Rate
	PrincipalBytes float64 // limits.principal.bytes: bytes per second of them; principalTimes Bytes

	TenantRate  float64 // limits.tenant.rate: messages per second of all agents of a tenant at this edge; no limit
	TenantBytes float64 // limits.tenant.bytes: bytes per second of them; no limit

	Nodes       int // limits.nodes: AIP nodes of one principal at this edge; 1024
	EdgeCalls   int // limits.edge.calls: calls open at this edge; 16384
	EdgeStreams int // limits.edge.streams: streams open at this edge; 262144
	EdgeSpaces  int // limits.edge.spaces: memberships of this edge's agents in spaces; 4194304
	EdgeNodes   int // limits.edge.nodes: AIP nodes at this edge; 32768

	Registrations        int   // limits.registrations: registrations without a connection of one principal in the cluster; its share of all of them
	ClusterRegistrations int   // limits.cluster.registrations: of everybody; 65536
	ClusterCards         int64 // limits.cluster.cards: bytes of what all agents of the cluster say of themselves; 128 MiB
	Approvals            int   // limits.approvals: approvals pending of one agent; 256
	ClusterApprovals     int   // limits.cluster.approvals: of everybody; 10000
	Book                 int64 // bytes in which approvals are kept; 64 MiB
	Shard                int64 // mailbox.shard-bytes: bytes that each stream of the log keeps, as package broker has it; 256 MiB

	Connections     int     // limits.connections: of the edge; as many as the process may open files for, with room to spare
	PerPrincipal    int     // limits.connections-per-principal: of one principal at this edge; no limit
	PerIP           int     // limits.connections-per-ip: from one address, or one /64 of IPv6, at this edge; no limit
	Handshakes      float64 // limits.handshakes: per second at this edge; no limit
	HandshakesPerIP float64 // limits.handshakes-per-ip: per second from one address, or one /64 of IPv6; no limit
	Queued          int64   // limits.queued: bytes that the edge holds for all its connections together; 256 MiB
}

// WithDefaults returns the limits with the defaults filled in.
func (l Limits) WithDefaults() Limits {
	l.Frame = cmp.Or(l.Frame, 1<<20)
	l.Streams = cmp.Or(l.Streams, 1024)
	l.Spaces = cmp.Or(l.Spaces, 256)
	l.Calls = cmp.Or(l.Calls, 1024)
	l.Nodes = cmp.Or(l.Nodes, 1024)
	l.EdgeCalls = cmp.Or(l.EdgeCalls, 16384)
	l.EdgeStreams = cmp.Or(l.EdgeStreams, 1<<18)
	l.EdgeSpaces = cmp.Or(l.EdgeSpaces, 1<<22)
	l.EdgeNodes = cmp.Or(l.EdgeNodes, 1<<15)
	l.ClusterRegistrations = cmp.Or(l.ClusterRegistrations, 1<<16)
	l.ClusterCards = cmp.Or(l.ClusterCards, 128<<20)
	l.Approvals = cmp.Or(l.Approvals, 256)
	l.ClusterApprovals = cmp.Or(l.ClusterApprovals, 10_000)
	l.Book = cmp.Or(l.Book, 64<<20)
	l.Shard = cmp.Or(l.Shard, 256<<20)
	l.Card = cmp.Or(l.Card, 256<<10)
	l.Queued = cmp.Or(l.Queued, 256<<20)
	l.InFlight = max(cmp.Or(l.InFlight, 1<<20), l.Frame)
	l.Burst = cmp.Or(l.Burst, 1)
	return l
}

// principalTimes is how many agents of a principal may speak as fast as one may, where nothing else is set.
const principalTimes = 16

// Effective are the limits that are in force, and the rates that follow from them.
type Effective struct {
	Limits
	messages, bytes                   rate // of an agent
	principalMessages, principalBytes rate
	tenantMessages, tenantBytes       rate
	rated                             bool // there is a rate of agents, principals or tenants
	handshakes, handshakesPerIP       rate
}

func newEffective(l Limits) *Effective {
	frame := float64(l.Frame) // a bucket must hold a whole frame, or none could ever pass
	return &Effective{
		Limits:            l,
		rated:             l.Rate+l.Bytes+l.PrincipalRate+l.PrincipalBytes+l.TenantRate+l.TenantBytes > 0,
		messages:          rateOf(l.Rate, l.Burst, 1),
		bytes:             rateOf(l.Bytes, l.Burst, frame),
		principalMessages: rateOf(cmp.Or(l.PrincipalRate, principalTimes*l.Rate), l.Burst, 1),
		principalBytes:    rateOf(cmp.Or(l.PrincipalBytes, principalTimes*l.Bytes), l.Burst, frame),
		tenantMessages:    rateOf(l.TenantRate, l.Burst, 1),
		tenantBytes:       rateOf(l.TenantBytes, l.Burst, frame),
		handshakes:        rateOf(l.Handshakes, l.Burst, 1),
		handshakesPerIP:   rateOf(l.HandshakesPerIP, l.Burst, 1),
	}
}

// LiveLimits holds the limits of an edge. They are read without a lock, and may change while they are.
type LiveLimits struct{ now atomic.Pointer[Effective] }

// NewLiveLimits returns limits that are in force from the start.
func NewLiveLimits(limits Limits) *LiveLimits {
	l := new(LiveLimits)
	l.Set(limits)
	return l
}

// Load returns the limits that are in force. They are not to be changed.
func (l *LiveLimits) Load() *Effective { return l.now.Load() }

// Set puts other limits in force, but for those that can't change.
func (l *LiveLimits) Set(limits Limits) {
	limits = limits.WithDefaults()
	if old := l.now.Load(); old != nil {
		limits.Frame, limits.InFlight, limits.Connections, limits.Queued = old.Frame, old.InFlight, old.Connections, old.Queued
	}
	l.now.Store(newEffective(limits))
}
