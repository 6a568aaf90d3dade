package member

import (
	"cmp"
	"log/slog"
	"net/url"
	"time"

	"github.com/agora-relay/agora"
	"github.com/agora-relay/agora/client"
)

// Bounds of what a server may say.
const (
	MaxResult = 4 << 20 // bytes of the answer of a tool, as JSON
	maxLine   = 4 << 20 // bytes of a line of the server's stdout, and of an answer over HTTP
	maxEvent  = 8 << 20 // bytes of an event over HTTP
	maxPages  = 64      // pages of the list of tools
	maxText   = 4096    // runes of an error
)

// Config sets up a member. Client.URLs and one of Command and URL are required; the zero value of everything else
// works.
type Config struct {
	Client client.Config // how it connects to the cluster; Agent may be empty: then it is the name of the server. Card, Handlers and OnStatus are the member's own

	Command []string // program that is the server, over stdio, and its arguments
	Env     []string // NAME=VALUE of each variable that the program gets beside PATH
	URL     string   // address of a server that is there, over Streamable HTTP

	Version string // of this program, which servers are told; may be empty

	MaxCalls    int           // calls at a time; 64
	CallTimeout time.Duration // after which a call that the server does not answer ends; 5m

	StartTimeout time.Duration  // within which the server must answer that it is there; 30s
	RestartWait  time.Duration  // how long a call waits for a server that is started again; 10s
	Grace        time.Duration  // between closing stdin, SIGTERM and SIGKILL, at the end; 5s
	Backoff      client.Backoff // between two starts of the server; 100ms to 30s

	Log *slog.Logger // discards if nil
}

func (c Config) withDefaults() Config {
	c.MaxCalls = cmp.Or(c.MaxCalls, 64)
	c.CallTimeout = cmp.Or(c.CallTimeout, 5*time.Minute)
	c.StartTimeout = cmp.Or(c.StartTimeout, 30*time.Second)
	c.RestartWait = cmp.Or(c.RestartWait, 10*time.Second)
	c.Grace = cmp.Or(c.Grace, 5*time.Second)
	c.Backoff.Min = cmp.Or(c.Backoff.Min, 100*time.Millisecond)
	c.Backoff.Max = cmp.Or(c.Backoff.Max, 30*time.Second)
	c.Log = cmp.Or(c.Log, slog.New(slog.DiscardHandler))
	return c
}

// check returns an INVALID_REQUEST error where the configuration makes no sense.
func (c *Config) check() error {
	switch {
	case len(c.Command) == 0 && c.URL == "":
		return agora.Errorf(agora.InvalidRequest, "which MCP server? Give its command, or its URL")
	case len(c.Command) > 0 && c.URL != "":
		return agora.Errorf(agora.InvalidRequest, "a server has a command or a URL, not both")
	case c.MaxCalls < 1:
		return agora.Errorf(agora.InvalidRequest, "the number of calls at a time must be at least 1")
	case c.CallTimeout < 0:
		return agora.Errorf(agora.InvalidRequest, "the time-out of calls must be more than nothing")
	}
	if u, err := url.Parse(c.URL); c.URL != "" && (err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https") {
		return agora.Errorf(agora.InvalidRequest, "the server's URL is none of http:// or https://")
	}
	if c.Client.Agent == "" {
		return nil
	}
	_, err := agora.ParseOwnID(c.Client.Agent)
	return err
}
