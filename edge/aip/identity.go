package aip

import "github.com/agora-relay/agora"

// speaks returns as whom a caller speaks who names an id: as the only agent that it may be, else as the one that it
// names, if it may be that.
func (c *caller) speaks(named string) (agora.AgentID, error) {
	p := c.actor.Principal()
	if sole, is := p.Sole(); is && !p.Unverified {
		return sole, nil
	}
	id, err := agora.ParseAgentID(named)
	if err != nil {
		return "", err
	}
	return id, c.may(id)
}

// may returns nil where the caller may be an agent.
func (c *caller) may(id agora.AgentID) error {
	if p := c.actor.Principal(); !p.Unverified && !p.May(id) {
		return agora.Errorf(agora.Forbidden, "these credentials are not those of '%s'", id)
	}
	return nil
}

// leaves is own for who ends its registration, which an earlier version may have taken.
func (c *caller) leaves(named string) (agora.AgentID, error) {
	id, err := agora.ParseStoredID(named)
	if err == nil {
		err = c.may(id)
	}
	return id, err
}

// own returns the id of an agent that the caller may be, which it names.
func (c *caller) own(named string) (agora.AgentID, error) {
	id, err := agora.ParseOwnID(named)
	if err == nil {
		err = c.may(id)
	}
	return id, err
}
