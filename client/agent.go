package client

import (
	"context"
	"net/url"
)

// agentHeader of the answer to a handshake names the agent that its credentials are for, where that is one alone.
const agentHeader = "Agora-Agent"

// AgentOf asks one of the edges which agent the credentials of a configuration are for, and returns its id: empty where
// they are for several, or for any. It opens a connection, and closes it again before it returns. Its errors are those
// of [Dial].
func AgentOf(ctx context.Context, cfg Config) (string, error) {
	cfg.Agent = ""
	cfg = cfg.withDefaults()
	c, err := newConnector(cfg, cfg.Log, nil, nil)
	if err != nil {
		return "", err
	}
	l, err := c.dialAny(ctx)
	if err != nil {
		return "", err
	}
	l.leave()
	id, _ := url.PathUnescape(l.agent) // empty where it can't be read
	return id, nil
}
