package spaces

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/agora-relay/agora"
	"github.com/agora-relay/agora/internal/rawjson"
	"github.com/agora-relay/agora/presence"
)

// Create makes a public space where it is missing. Errors: INVALID_REQUEST
// (name), FORBIDDEN (a system space), UNAVAILABLE.
func (h *Hub) Create(ctx context.Context, tenant, space string) error {
	typ, err := Type(space)
	if err != nil {
		return err
	}
	if typ == System {
		return agora.Errorf(agora.Forbidden, "Space '%s' is a system space: it comes to be by its first join", space)
	}
	return fault(space, h.cfg.Presence.Spaces.Create(ctx, tenant, space, typ))
}

// List returns the tenant's spaces, [StatusSpace] always among them, sorted by name.
func (h *Hub) List(ctx context.Context, tenant string) ([]presence.Space, error) {
	list, err := h.cfg.Presence.Spaces.List(ctx, tenant)
	if err != nil {
		return nil, fault("", err)
	}
	if !slices.ContainsFunc(list, func(s presence.Space) bool { return s.Name == StatusSpace }) {
		list = append(list, presence.Space{Name: StatusSpace, Type: System})
	}
	slices.SortFunc(list, func(a, b presence.Space) int { return strings.Compare(a.Name, b.Name) })
	return list, nil
}

// Exists returns SPACE_NOT_FOUND with the message "Space 'x' does not exist"
// where it does not. [StatusSpace] always does.
func (h *Hub) Exists(ctx context.Context, tenant, space string) error {
	if _, err := Type(space); err != nil {
		return err
	}
	if space == StatusSpace {
		return nil
	}
	ok, err := h.cfg.Presence.Spaces.Exists(ctx, tenant, space)
	if err == nil && !ok {
		err = presence.ErrNoSpace
	}
	return fault(space, err)
}

// AnnounceStatus publishes into [StatusSpace] that an agent has come or gone, or that its card has changed;
// coming and going once per (agent, epoch) in the cluster, whoever calls it how
// often within the duplicate window. It retries until ctx is over.
func (h *Hub) AnnounceStatus(ctx context.Context, c presence.Claim, status agora.AgentStatus) error {
	body := statusBody(c.Agent, status, h.cfg.Broker.Now())
	key := fmt.Sprintf("status/%s/%s/%d/%s", agora.EncodeToken(c.Tenant), agora.EncodeToken(string(c.Agent)), c.Epoch, status)
	if status == agora.Updated { // each is another one
		key += "/" + rand.Text()
	}
	m := agora.Message{Kind: agora.Event, To: agora.ToSpace(c.Tenant, StatusSpace), Body: body}
	_, err := h.cfg.Broker.Publish(ctx, key, m)
	return fault(StatusSpace, err)
}

// statusBody is the data of an event in agent.status.
func statusBody(agent agora.AgentID, status agora.AgentStatus, at time.Time) []byte {
	return fmt.Appendf(nil, `{"agent":%s,"status":"%s","timestamp":%d}`, rawjson.AppendString(nil, string(agent)), status, at.Unix())
}

// StatusAgent returns the agent that an event of [StatusSpace] speaks of.
func StatusAgent(data []byte) (id agora.AgentID, ok bool) {
	var s struct {
		Agent agora.AgentID `json:"agent"`
	}
	if json.Unmarshal(data, &s) != nil {
		return "", false
	}
	return s.Agent, s.Agent != ""
}
