package admission

import "cmp"

// Resource is something of which there is only so much, and which agents hold for a while. What may be held of each
// stands here, in [Limits.Bound] and in the table below it, and nowhere else.
type Resource uint8

const (
	Calls         Resource = iota // calls open at an edge, by the one who makes them
	CallsFor                      // calls open at an edge for one agent, by the one who makes them
	Streams                       // streams that sessions of an edge have open
	Spaces                        // memberships of sessions of an edge in spaces
	Nodes                         // AIP nodes that an edge holds, those that links have brought included
	Offers                        // nodes that the links of an edge are offered by other gateways
	OfferBytes                    // bytes of what those gateways say of them
	Subscriptions                 // subscriptions to what becomes of nodes, at an edge
	RequestBytes                  // bytes of bodies and messages of requests that an edge reads or answers

	Connections // connections of principals to an edge, counted by [ConnLimiter]
	Bytes       // bytes that an edge holds, of which the shedder decides: see [Tally]

	Executes      // tasks that an edge remembers, counted by package tools
	Registrations // registrations without a connection, counted by presence
	CardBytes     // bytes of what agents say of themselves, counted by presence
	Approvals     // approvals that nobody has decided, counted by package approval
	ApprovalBytes // bytes of approvals that are kept, counted by package approval
	ShardBytes    // bytes that stand in a stream of the log, counted by package broker

	resources // how many there are
)

// Bound returns how much of a resource may be held.
func (l *Limits) Bound(r Resource) Bound {
	switch r {
	case Calls:
		return Bound{Agent: int64(l.Calls), Whole: int64(l.EdgeCalls)}
	case CallsFor: // so that one principal may have all the calls of an agent open for one callee, and leaves as many to others
		return Bound{Principal: int64(l.Calls), Whole: 2 * int64(l.Calls)}
	case Streams:
		return Bound{Agent: int64(l.Streams), Whole: int64(l.EdgeStreams)}
	case Spaces:
		return Bound{Agent: int64(l.Spaces), Whole: int64(l.EdgeSpaces)}
	case Nodes:
		return Bound{Principal: int64(l.Nodes), Whole: int64(l.EdgeNodes)}
	case Offers:
		return Bound{Principal: mostOffered, Whole: 2 * mostOffered}
	case OfferBytes:
		return Bound{Whole: mostOfferBytes}
	case Subscriptions:
		return Bound{Agent: agentSubscriptions, Whole: mostSubscriptions}
	case RequestBytes:
		return Bound{Whole: max(cmp.Or(l.Queued, defaultQueued)/2, leastForRequests)}
	case Connections:
		return Bound{Principal: int64(l.PerPrincipal), Whole: int64(l.Connections)}
	case Bytes:
		return Bound{Whole: l.Queued}
	case Executes:
		return Bound{Whole: EdgeExecutes}
	case Registrations:
		return Bound{Principal: int64(l.Registrations), Whole: int64(l.ClusterRegistrations)}
	case CardBytes:
		return Bound{Whole: l.ClusterCards}
	case Approvals:
		return Bound{Agent: int64(l.Approvals), Whole: int64(l.ClusterApprovals)}
	case ApprovalBytes:
		return BookBound(l.Book)
	case ShardBytes:
		return Bound{Whole: l.Shard}
	}
	return Bound{}
}

// Bounds that no setting has.
const (
	mostOffered        = 16384    // nodes of one link
	mostOfferBytes     = 32 << 20 // of all links of an edge
	agentSubscriptions = 64       // of one agent
	mostSubscriptions  = 8192     // of an edge
)

// leastForRequests is how many bytes of requests an edge may hold however little limits.queued is.
const leastForRequests = 4 << 20

// EdgeExecutes is how many tasks one edge remembers.
const EdgeExecutes = 16384

// BookBound returns how much of a book of so many bytes may be taken by what is asked: there is room left to decide it.
func BookBound(bytes int64) Bound { return Bound{Agent: bytes / 16, Whole: bytes / 4 * 3} }

// resource is what is told of one.
type resource struct {
	name     string // in metrics
	held     string // what is held, in the plural: "this tenant has as many … as it may"
	full     string // what is told where the whole is held
	settings string // of which [Limits.Bound] is made
	counted  string // where the whole is, as docs/security.md has it
}

// table has a row for each resource.
var table = [resources]resource{
	Calls:         {"calls", "open calls", "the edge has as many open calls as it can take", "`limits.calls` (agent), `limits.edge.calls` (whole)", "an edge"},
	CallsFor:      {"calls_for", "open calls for one agent", "as many calls are open for this agent as may be", "`limits.calls` (principal), twice as many (whole)", "an edge, of each agent that is called"},
	Streams:       {"streams", "open streams", "the edge has as many open streams as it can take", "`limits.streams` (agent), `limits.edge.streams` (whole)", "an edge"},
	Spaces:        {"spaces", "memberships in spaces", "the edge has as many memberships in spaces as it can take", "`limits.spaces` (agent), `limits.edge.spaces` (whole)", "an edge"},
	Nodes:         {"nodes", "AIP nodes at this edge", "the edge has as many AIP nodes as it can take", "`limits.nodes` (principal), `limits.edge.nodes` (whole)", "an edge"},
	Offers:        {"offers", "nodes of linked gateways", "the edge has as many nodes of linked gateways as it can take", "none: what is beyond is left out; a link counts as a principal", "an edge"},
	OfferBytes:    {"offer_bytes", "bytes of nodes of linked gateways", "the edge has as many bytes of nodes of linked gateways as it can take", "none: what is beyond is left out; a link counts as a principal", "an edge"},
	Subscriptions: {"subscriptions", "subscriptions to AIP nodes", "the edge has as many subscriptions to AIP nodes as it can take", "none", "an edge"},
	RequestBytes:  {"request_bytes", "bytes of unfinished requests", "the edge holds as many bytes of unfinished requests as it can", "half of `limits.queued` (whole)", "an edge"},

	Connections:   {"connections", "connections", "the edge has as many connections as it can take", "`limits.connections-per-principal` (principal), `limits.connections` (whole)", "an edge, not with `--auth none`"},
	Bytes:         {"bytes", "bytes held", "the edge holds as much as it can", "`limits.queued` (whole)", "an edge"},
	Executes:      {"executes", "open executes", "the edge has as many executes open as it can take", "none", "an edge"},
	Registrations: {"registrations", "registrations without a connection", "the cluster has as many registrations without a connection as it may", "`limits.registrations` (principal), `limits.cluster.registrations` (whole)", "the cluster"},
	CardBytes:     {"card_bytes", "bytes of agents' cards", "the cluster has as many bytes of agents' cards as it may", "`limits.cluster.cards` (whole), `limits.card` of each", "the cluster"},
	Approvals:     {"approvals", "pending approvals", "the cluster has as many pending approvals as it may", "`limits.approvals` (agent), `limits.cluster.approvals` (whole)", "the cluster"},
	ApprovalBytes: {"approval_bytes", "bytes of approvals of late", "the cluster has as many bytes of approvals of late as it may", "none: parts of the 64 MiB of `AGORA_BOOK`, kept for `approvals.keep`", "the cluster"},
	ShardBytes:    {"shard_bytes", "bytes in a stream of the log", "the message log is full", "`mailbox.shard-bytes`, `calls.shard-bytes` (whole)", "each stream, once it is half full"},
}

// String returns the name of a resource, as metrics have it.
func (r Resource) String() string { return table[r].name }

// Resources returns all that there are.
func Resources() []Resource {
	all := make([]Resource, resources)
	for r := range all {
		all[r] = Resource(r)
	}
	return all
}
