package edge

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/agora-relay/agora"
	"github.com/agora-relay/agora/presence"
	"github.com/agora-relay/agora/spaces"
)

// SpaceView is all that the cluster knows of a space, for operators.
type SpaceView struct {
	Space   string       `json:"space"`
	Tenant  string       `json:"tenant"`
	Type    string       `json:"type"`
	Count   int          `json:"member_count"`
	Members []MemberView `json:"members"` // the first few hundred
	Log     MailboxView  `json:"log"`
}

// MemberView is a member, and up to where it is known to have read: as it was written last, some seconds ago.
type MemberView struct {
	Agent agora.AgentID `json:"agent"`
	Seq   uint64        `json:"seq"`
}

// shownMembers bounds a SpaceView.
const shownMembers = 256

// InspectSpace returns what is known of a space. SPACE_NOT_FOUND, UNAVAILABLE, INVALID_REQUEST.
func (n *Node) InspectSpace(ctx context.Context, tenant, space string) (SpaceView, error) {
	v := SpaceView{Space: space, Tenant: tenant}
	var err error
	if v.Type, err = spaces.Type(space); err != nil {
		return v, err
	}
	members, err := n.cfg.Presence.Members(ctx, tenant, space)
	if err == presence.ErrNoSpace {
		return v, agora.Errorf(agora.SpaceNotFound, "Space '%s' does not exist", space)
	}
	if err != nil {
		return v, err
	}
	v.Count = len(members)
	members = members[:min(len(members), shownMembers)]
	at, err := n.cfg.Presence.Cursors(ctx, tenant, space, members)
	if err != nil {
		return v, err
	}
	for i, id := range members {
		v.Members = append(v.Members, MemberView{id, at[i]})
	}
	v.Log, err = n.viewMailbox(ctx, agora.ToSpace(tenant, space))
	return v, err
}

// EdgeView is what is known of an edge.
type EdgeView struct {
	Edge        string    `json:"edge"`
	Incarnation string    `json:"incarnation"`
	Alive       bool      `json:"alive"`          // it has a lease
	RenewedMS   int64     `json:"renewed_ms_ago"` // the lease was
	Self        *EdgeSelf `json:"self,omitempty"` // by its own word; missing where it does not answer
}

// EdgeSelf is what an edge says of itself.
type EdgeSelf struct {
	Ready     string           `json:"ready"` // "yes", or why not
	Draining  bool             `json:"draining"`
	Since     time.Time        `json:"since"`
	Sessions  int64            `json:"sessions"`
	Started   int64            `json:"sessions_started"`
	Ended     map[string]int64 `json:"sessions_ended"`
	Stored    int64            `json:"messages_stored"`
	LeaseLeft float64          `json:"lease_left_seconds"`
	Log       bool             `json:"log_connected"`
	Skew      float64          `json:"clock_skew_seconds"`
	Lanes     int64            `json:"lanes"`
	Inboxes   int64            `json:"inboxes"`
	Held      int64            `json:"queued_bytes"`
}

// InspectEdges returns what is known of the edges of the cluster, sorted by id; of one alone where an id is given.
// Each is asked. UNAVAILABLE.
func (n *Node) InspectEdges(ctx context.Context, id string) ([]EdgeView, error) {
	all, err := n.cfg.Presence.Edges(ctx)
	if err != nil {
		return nil, err
	}
	views := []EdgeView{}
	for _, h := range all {
		if id != "" && h.Edge != id {
			continue
		}
		v := EdgeView{Edge: h.Edge, Incarnation: h.Incarnation}
		age, alive, err := n.cfg.Presence.Age(ctx, h)
		if err != nil {
			return nil, err
		}
		v.Alive, v.RenewedMS = alive, age.Milliseconds()
		asking, cancel := context.WithTimeout(ctx, answerTime)
		if r, err := n.ask(asking, h, question{Verb: "self"}); err == nil {
			v.Self = r.Self
		}
		cancel()
		views = append(views, v)
	}
	slices.SortFunc(views, func(a, b EdgeView) int { return cmp.Compare(a.Edge, b.Edge) })
	return views, nil
}

// self is what this edge says of itself.
func (n *Node) self() *EdgeSelf {
	s, l := n.Stats(), n.cfg.Broker.Stats()
	v := &EdgeSelf{
		Ready: "yes", Draining: s.Draining, Since: n.began, Sessions: s.Sessions, Started: s.Started, Ended: s.Ended, Stored: s.Sent,
		LeaseLeft: s.LeaseLeft.Seconds(), Log: n.cfg.Broker.Connected(), Skew: l.Skew.Seconds(),
		Lanes: l.Lanes, Inboxes: l.Inboxes, Held: n.crowd.Held(),
	}
	if err := n.Ready(); err != nil {
		v.Ready = agora.AsError(err).Message
	}
	return v
}
