package host

import (
	"context"
	"errors"
	"fmt"

	"github.com/agora-relay/agora"
	"github.com/agora-relay/agora/client"
	"github.com/agora-relay/agora/internal/quote"
)

// trouble returns why there is no connection now, as a sentence that names the edges and says what to do; nil where
// there is one.
func (l *link) trouble() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch e := agora.AsError(l.err); {
	case l.err == nil:
		return nil
	case errors.Is(l.err, client.ErrTakenOver):
		return fmt.Errorf("another connection has become agent %q; start this server with another id: agora mcp --as OTHER-ID", l.cfg.Agent)
	case e.Code == agora.AgentExists:
		by := "by another connection"
		if l.holder != "" {
			by = "by: " + l.holder
		}
		return fmt.Errorf("agent %q is in use %s; this server goes on trying. End that one, or start this server with another id: agora mcp --as OTHER-ID", l.cfg.Agent, by)
	case e.Code == agora.Unauthorized, e.Code == agora.Forbidden:
		return fmt.Errorf("the cluster refuses this agent's credentials (%s); the person who runs this must give a token for agent %q by --token-file, which is read again at each attempt", e.Message, l.cfg.Agent)
	default:
		return fmt.Errorf("no edge of the cluster can be reached now: %s (%s); connecting goes on by itself: try again in some seconds", listed(quote.Addresses(l.cfg.URLs)), reason(l.err))
	}
}

// reason says why no edge was reached: in the client's words, and in those of the system where it has some.
func reason(err error) string {
	if errors.Is(err, context.DeadlineExceeded) {
		return "it does not answer"
	}
	text, last := brief(err), err
	for next := errors.Unwrap(last); next != nil; next = errors.Unwrap(next) {
		last = next
	}
	if last == err {
		return text
	}
	more, _ := cut(last.Error(), 0, maxHolder)
	return text + ": " + more
}

// stuck adds to what a tool says that has no answer of the cluster why there is no connection, where there is none.
func (h *Host) stuck(format string, args ...any) error {
	err := fmt.Errorf(format, args...)
	if trouble := h.link.trouble(); trouble != nil {
		return fmt.Errorf("%w. For now %w", err, trouble)
	}
	return err
}
