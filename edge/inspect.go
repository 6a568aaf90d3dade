package edge

import (
	"context"
	"time"

	"github.com/agora-relay/agora"
	"github.com/agora-relay/agora/presence"
)

// AgentView is all that the cluster knows of an agent, for operators.
type AgentView struct {
	Agent     agora.AgentID    `json:"agent"`
	Tenant    string           `json:"tenant"`
	State     string           `json:"state"` // online, grace, ending, away
	Edge      string           `json:"edge,omitempty"`
	Conn      string           `json:"conn,omitempty"`
	Session   string           `json:"session,omitempty"`
	Principal string           `json:"principal,omitempty"`
	Epoch     uint64           `json:"epoch,omitempty"`
	Name      string           `json:"name,omitempty"`
	Since     *time.Time       `json:"since,omitempty"`
	GraceEnds *time.Time       `json:"grace_ends,omitempty"`
	KnownTo   *time.Time       `json:"known_to,omitempty"`
	Confirmed uint64           `json:"confirmed"` // position up to which it is known to have read
	Written   uint64           `json:"written"`   // position up to which it was written to a socket
	Mailbox   MailboxView      `json:"mailbox"`
	Spaces    []SpacePosition  `json:"spaces,omitempty"`
	Sends     []LaneView       `json:"sends,omitempty"` // to whom its session has sent
	Unsettled []string         `json:"unsettled,omitempty"`
	Live      *LiveView        `json:"live,omitempty"` // by its edge's own word; missing where that does not answer
	History   []presence.Event `json:"history,omitempty"`
}

// MailboxView is what the log keeps for an agent or space.
type MailboxView struct {
	Stream  string     `json:"stream"`
	Records int64      `json:"records"`
	Unread  int        `json:"unread_records,omitempty"`
	First   uint64     `json:"first,omitempty"`
	FirstAt *time.Time `json:"first_at,omitempty"`
	Last    uint64     `json:"last,omitempty"`
	LastAt  *time.Time `json:"last_at,omitempty"`
}

// SpacePosition is how far an agent is in a space.
type SpacePosition struct {
	Space string `json:"space"`
	Seq   uint64 `json:"seq"`
}

// LaneView is an addressee of a session, and its open streams.
type LaneView struct {
	To   string   `json:"to"`
	Open []string `json:"open_streams,omitempty"`
}

// LiveView is a session by the word of the edge that holds it.
type LiveView struct {
	Since     time.Time `json:"since"`
	Begun     bool      `json:"begun"`
	Confirmed uint64    `json:"confirmed"`
	Written   uint64    `json:"written"`
	Acks      bool      `json:"acks"`           // it acknowledges by itself; else pongs tell
	Queued    int       `json:"queued_bytes"`   // live records that wait for its socket
	Blocked   bool      `json:"blocked"`        // its socket is not read: too much under way
	Withheld  bool      `json:"withheld"`       // the edge may not deliver at the moment
	HeardMS   int64     `json:"heard_ms"`       // since its last sign of life
	Over      bool      `json:"over,omitempty"` // it only flushes what is under way
}

// InspectAgent returns what is known of an agent: some round trips to presence, log and the edge that has it. AGENT_NOT_FOUND, UNAVAILABLE.
func (n *Node) InspectAgent(ctx context.Context, tenant string, id agora.AgentID) (AgentView, error) {
	v, _, err := n.viewAgent(ctx, tenant, id)
	if err != nil {
		return v, err
	}
	to := agora.ToAgent(tenant, id)
	if v.Mailbox, err = n.viewMailbox(ctx, to); err != nil {
		return v, err
	}
	v.Mailbox.Unread, err = n.cfg.Broker.Unread(ctx, to, v.Confirmed|(1<<agora.SeqShift-1))
	return v, err
}

// viewAgent is InspectAgent without the mailbox.
func (n *Node) viewAgent(ctx context.Context, tenant string, id agora.AgentID) (AgentView, presence.Sight, error) {
	sight, err := n.cfg.Presence.Look(ctx, tenant, id)
	if err != nil {
		return AgentView{}, sight, err
	}
	if !sight.Known {
		return AgentView{}, sight, agora.UnknownAgent(id)
	}
	v := AgentView{
		Agent: id, Tenant: tenant, State: "away", Name: sight.Card.Name,
		Conn: sight.Conn, Session: sight.Session, Principal: sight.Principal, Epoch: sight.Epoch, Edge: sight.Holder.Edge,
		Confirmed: sight.Position.Cursor, Written: sight.Position.Written,
		Since: some(sight.Card.RegisteredAt), GraceEnds: some(sight.GraceEnds), KnownTo: some(sight.KnownTo),
	}
	for name, seq := range sight.Spaces {
		v.Spaces = append(v.Spaces, SpacePosition{name, seq})
	}
	for _, l := range sight.Lanes {
		lane := LaneView{To: l.To.Name()}
		for _, o := range l.Open {
			if o.Stream != "" && o.Stream[0] != 0 {
				lane.Open = append(lane.Open, o.Stream)
			}
		}
		v.Sends = append(v.Sends, lane)
	}
	for _, p := range sight.Unsettled {
		v.Unsettled = append(v.Unsettled, p.Holder.Edge)
	}
	switch sight.Phase {
	case presence.Active:
		v.State = "online"
		n.addLive(ctx, &v, sight)
	case presence.InGrace, presence.Ending:
		v.State = string(sight.Phase)
	}
	v.History, err = n.cfg.Presence.History(ctx, tenant, id)
	return v, sight, err
}

// addLive adds what the agent's edge says.
func (n *Node) addLive(ctx context.Context, v *AgentView, sight presence.Sight) {
	ctx, cancel := context.WithTimeout(ctx, answerTime)
	defer cancel()
	r, err := n.ask(ctx, sight.Holder, question{Verb: "inspect", Tenant: v.Tenant, Agent: v.Agent, Epoch: sight.Epoch})
	if err != nil || r.Live == nil {
		return
	}
	v.Live = r.Live
	v.Confirmed, v.Written = max(v.Confirmed, r.Live.Confirmed), max(v.Written, r.Live.Written)
}

func (n *Node) viewMailbox(ctx context.Context, to agora.Address) (MailboxView, error) {
	m, err := n.cfg.Broker.Mailbox(ctx, to)
	return MailboxView{
		Stream: m.Stream, Records: m.Records, First: m.First, FirstAt: some(m.FirstAt), Last: m.Last, LastAt: some(m.LastAt),
	}, err
}

// liveView is the session of an epoch that this edge holds; nil where it has none.
func (n *Node) liveView(at agora.Address, epoch uint64) *LiveView {
	for _, s := range n.of(at, epoch+1) {
		if s.claim.Epoch != epoch {
			continue
		}
		v := &LiveView{
			Since: time.Unix(0, s.since), Begun: s.begun.Load(), Queued: s.inbox.Held(), Blocked: s.blocked.any(), Withheld: s.kept.Load(),
			HeardMS: (agora.Ticks() - s.heard.Load()) / int64(time.Millisecond),
		}
		s.mu.Lock()
		v.Confirmed, v.Written, v.Acks, v.Over = s.confirmed, s.wrote, s.proof.is(ByAck), s.over
		s.mu.Unlock()
		return v
	}
	return nil
}

// some is a time that is left out where it is none.
func some(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	t = t.UTC()
	return &t
}
