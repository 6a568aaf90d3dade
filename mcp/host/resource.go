package host

import (
	"context"
	"encoding/json"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// inboxResource is the mailbox as a resource: hosts that follow it are told when a message has come.
var inboxResource = &mcp.Resource{
	URI: "agora://inbox", Name: "inbox", Title: "Mailbox", MIMEType: "application/json",
	Description: "The messages that wait for you, in a line each. To read them, and to acknowledge what you have taken, call agora_inbox.",
}

// readInboxResource returns what waits. Nothing counts as read by it.
func (h *Host) readInboxResource(_ context.Context, req *mcp.ReadResourceRequest) (*mcp.ReadResourceResult, error) {
	b, err := json.Marshal(summarize(h.cfg.Client.Agent, h.inbox.Peek()))
	if err != nil {
		return nil, err
	}
	return &mcp.ReadResourceResult{Contents: []*mcp.ResourceContents{{URI: req.Params.URI, MIMEType: inboxResource.MIMEType, Text: string(b)}}}, nil
}
