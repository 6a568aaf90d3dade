package operator

import (
	"context"

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
func (s *Service) InspectSpace(ctx context.Context, tenant, space string) (SpaceView, error) {
	v := SpaceView{Space: space, Tenant: tenant}
	var err error
	if v.Type, err = spaces.Type(space); err != nil {
		return v, err
	}
	members, err := s.presence.Spaces.Members(ctx, tenant, space)
	if err == presence.ErrNoSpace {
		return v, agora.Errorf(agora.SpaceNotFound, "Space '%s' does not exist", space)
	}
	if err != nil {
		return v, err
	}
	v.Count = len(members)
	members = members[:min(len(members), shownMembers)]
	at, err := s.presence.Operators.Cursors(ctx, tenant, space, members)
	if err != nil {
		return v, err
	}
	for i, id := range members {
		v.Members = append(v.Members, MemberView{id, at[i]})
	}
	v.Log, err = s.viewMailbox(ctx, agora.ToSpace(tenant, space))
	return v, err
}
