package host

import (
	"context"

	"github.com/agora-relay/agora"
	"github.com/agora-relay/agora/client"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// Catalog is what keeps tools of others on a server: Prepare makes the first of them, for some seconds at most, and
// Serve keeps them until ctx ends.
type Catalog interface {
	Prepare(ctx context.Context, s *mcp.Server) error
	Serve(ctx context.Context, s *mcp.Server) error
}

// Present is the agent by whichever connection it has at the time. Each method waits some seconds for one, and fails
// with a sentence that says what to do where there is none.
type Present struct{ h *Host }

// Present returns the agent.
func (h *Host) Present() Present { return Present{h} }

// Agent returns the agent's id.
func (p Present) Agent() string { return p.h.cfg.Client.Agent }

// client returns the connection that there is. UNAVAILABLE, with a sentence for a model.
func (p Present) client(ctx context.Context) (*client.Client, error) {
	c, err := p.h.link.client(ctx)
	if err != nil {
		return nil, &agora.Error{Code: agora.Unavailable, Message: err.Error()}
	}
	return c, nil
}

// Agents is [client.Client.Agents].
func (p Present) Agents(ctx context.Context) ([]agora.Agent, error) {
	c, err := p.client(ctx)
	if err != nil {
		return nil, err
	}
	return c.Agents(ctx)
}

// AgentCard is [client.Client.AgentCard].
func (p Present) AgentCard(ctx context.Context, id string) (agora.Agent, error) {
	c, err := p.client(ctx)
	if err != nil {
		return agora.Agent{}, err
	}
	return c.AgentCard(ctx, id)
}

// FindAgents is [client.Client.FindAgents].
func (p Present) FindAgents(ctx context.Context, q client.Query) ([]agora.Agent, error) {
	c, err := p.client(ctx)
	if err != nil {
		return nil, err
	}
	return c.FindAgents(ctx, q)
}

// CallTool is [client.Client.CallTool].
func (p Present) CallTool(ctx context.Context, to, tool string, arguments any) (*client.Call, error) {
	c, err := p.client(ctx)
	if err != nil {
		return nil, err
	}
	return c.CallTool(ctx, to, tool, arguments)
}
