package operator

import (
	"context"
	"time"

	"github.com/agora-relay/agora"
	"github.com/agora-relay/agora/edge"
	"github.com/agora-relay/agora/presence"
)

// AgentView is all that the cluster knows of an agent, for operators.
type AgentView struct {
	Agent     agora.AgentID       `json:"agent"`
	Tenant    string              `json:"tenant"`
	State     string              `json:"state"` // online, grace, ending, away
	Edge      string              `json:"edge,omitempty"`
	Conn      string              `json:"conn,omitempty"`
	Session   string              `json:"session,omitempty"`
	Principal string              `json:"principal,omitempty"`
	Epoch     uint64              `json:"epoch,omitempty"`
	Name      string              `json:"name,omitempty"`
	Since     *time.Time          `json:"since,omitempty"`
	GraceEnds *time.Time          `json:"grace_ends,omitempty"`
	KnownTo   *time.Time          `json:"known_to,omitempty"`
	Confirmed uint64              `json:"confirmed"` // position up to which it is known to have read
	Written   uint64              `json:"written"`   // position up to which it was written to a socket
	Mailbox   MailboxView         `json:"mailbox"`
	Spaces    []SpacePosition     `json:"spaces,omitempty"`
	Sends     []LaneView          `json:"sends,omitempty"` // to whom its session has sent
	Unsettled []string            `json:"unsettled,omitempty"`
	Live      *edge.SessionStatus `json:"live,omitempty"` // by its edge's own word; missing where that does not answer
	History   []presence.Event    `json:"history,omitempty"`
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

// InspectAgent returns what is known of an agent: some round trips to presence, log and the edge that has it.
// AGENT_NOT_FOUND, UNAVAILABLE.
func (s *Service) InspectAgent(ctx context.Context, tenant string, id agora.AgentID) (AgentView, error) {
	v, _, err := s.viewAgent(ctx, tenant, id)
	if err != nil {
		return v, err
	}
	to := agora.ToAgent(tenant, id)
	if v.Mailbox, err = s.viewMailbox(ctx, to); err != nil {
		return v, err
	}
	v.Mailbox.Unread, err = s.broker.Unread(ctx, to, v.Confirmed|(1<<agora.SeqShift-1))
	return v, err
}

// viewAgent is InspectAgent without the mailbox.
func (s *Service) viewAgent(ctx context.Context, tenant string, id agora.AgentID) (AgentView, presence.Sight, error) {
	sight, err := s.presence.Operators.Inspect(ctx, tenant, id)
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
		s.addLive(ctx, &v, sight)
	case presence.InGrace, presence.Ending:
		v.State = string(sight.Phase)
	}
	v.History, err = s.presence.Operators.History(ctx, tenant, id)
	return v, sight, err
}

// addLive adds what the agent's edge says.
func (s *Service) addLive(ctx context.Context, v *AgentView, sight presence.Sight) {
	ctx, cancel := context.WithTimeout(ctx, answerTime)
	defer cancel()
	live, err := s.node.Inquiries().Session(ctx, sight.Holder, agora.ToAgent(v.Tenant, v.Agent), sight.Epoch)
	if err != nil || live == nil {
		return
	}
	v.Live = live
	v.Confirmed, v.Written = max(v.Confirmed, live.Confirmed), max(v.Written, live.Written)
}

func (s *Service) viewMailbox(ctx context.Context, to agora.Address) (MailboxView, error) {
	m, err := s.broker.Mailbox(ctx, to)
	return MailboxView{
		Stream: m.Stream, Records: m.Records, First: m.First, FirstAt: some(m.FirstAt), Last: m.Last, LastAt: some(m.LastAt),
	}, err
}

// some is a time that is left out where it is none.
func some(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	t = t.UTC()
	return &t
}
