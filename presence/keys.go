package presence

import (
	"strings"

	"github.com/agora-relay/agora"
)

// Every key begins with the name and the version of what is stored. A tag in
// braces keeps what one script needs on one node of a Redis Cluster. Tenants,
// ids and names stand encoded: they can't hold a brace or a dot.
const root = "agora:1:"

const (
	edgesKey = root + "{edges}"       // "<edge> <incarnation>" by the end of its lease
	dueKey   = root + "{due}"         // agents by the time at which Sweep must look at them
	adoptKey = root + "{adopt}"       // agents whose dialled session may have lost its edge, by the time to look at them
	sweepKey = root + "{sweep}"       // lock: who sweeps
	probeKey = root + "{probe}"       // tells a starting edge that it may write
	wholeKey = root + "{edges}:whole" // mark: what is not here is nowhere
	sinceKey = root + "{edges}:since" // since when edges tell what was lost; none where the mark is there
	linksKey = root + "{links}"       // links to gateways of others
	heldKey  = root + "{links}:held"  // which edge holds each of them
)

// member is an agent in an index, or in a key.
func member(tenant string, id agora.AgentID) string {
	return agora.EncodeToken(tenant) + "." + agora.EncodeToken(string(id))
}

// agentKeys are the keys of one agent; all have its tag.
type agentKeys struct{ tag, rec, unsettled, spaces, cancelled, lanes string }

// keysOf returns the keys of a member; lanes belong to one of its sessions.
func keysOf(member, session string) agentKeys {
	k := root + "{a:" + member + "}:"
	return agentKeys{
		tag:       k,
		rec:       k + "rec",
		unsettled: k + "unsettled",
		spaces:    k + "spaces",
		cancelled: k + "cancelled",
		lanes:     k + "lanes:" + agora.EncodeToken(session),
	}
}

// What stands before and behind a member in the key of its record.
const (
	recordBegin = root + "{a:"
	recordEnd   = "}:rec"
)

// recordOf returns the key of a member's record, without making the others.
func recordOf(member string) string { return recordBegin + member + recordEnd }

// history returns the key of the agent's short history.
func (k agentKeys) history() string { return k.tag + "history" }

// all returns the keys in the order in which most scripts take them.
func (k agentKeys) all() []string {
	return []string{k.rec, k.unsettled, k.spaces, k.cancelled, k.lanes}
}

// keys returns the keys of the claim's agent and session.
func (c Claim) keys() agentKeys { return keysOf(member(c.Tenant, c.Agent), c.Session) }

func splitMember(m string) (tenant string, id agora.AgentID, ok bool) {
	t, i, ok := strings.Cut(m, ".")
	if !ok {
		return "", "", false
	}
	tenant, err := agora.DecodeToken(t)
	if err != nil {
		return "", "", false
	}
	name, err := agora.DecodeToken(i)
	return tenant, agora.AgentID(name), err == nil
}

func leaseKey(edge string) string { return root + "{e:" + agora.EncodeToken(edge) + "}:lease" }
func beatKey(edge string) string  { return root + "{e:" + agora.EncodeToken(edge) + "}:beat" }

// claimsKey is the index of the agents that a life of an edge has claimed, by time.
func claimsKey(h Holder) string {
	return root + "{e:" + agora.EncodeToken(h.Edge) + "}:claims:" + agora.EncodeToken(h.Incarnation)
}

// dialsKey is the index of those of them whose connections it has dialled.
func dialsKey(h Holder) string {
	return root + "{e:" + agora.EncodeToken(h.Edge) + "}:dials:" + agora.EncodeToken(h.Incarnation)
}

// agentsKey is the index of a tenant's agents, spacesKey that of its spaces.
func agentsKey(tenant string) string { return root + "{agents:" + agora.EncodeToken(tenant) + "}" }

// revisionKey is that of the tenant's directory: see list.
func revisionKey(tenant string) string { return agentsKey(tenant) + ":rev" }
func spacesKey(tenant string) string   { return root + "{spaces:" + agora.EncodeToken(tenant) + "}" }

// spaceKeys returns the keys of a space: meta, members, order, pending.
func spaceKeys(tenant, space string) []string {
	k := root + "{s:" + agora.EncodeToken(tenant) + "." + agora.EncodeToken(space) + "}:"
	return []string{k + "meta", k + "members", k + "order", k + "pending"}
}

// word is a holder as one word of an index or a record, apart from its epoch.
func (h Holder) word() string {
	return agora.EncodeToken(h.Edge) + " " + agora.EncodeToken(h.Incarnation)
}

// parseHolder reads what word wrote; parts that no Store wrote come out empty.
func parseHolder(word string) Holder {
	e, i, _ := strings.Cut(word, " ")
	edge, _ := agora.DecodeToken(e)
	inc, _ := agora.DecodeToken(i)
	return Holder{Edge: edge, Incarnation: inc}
}
