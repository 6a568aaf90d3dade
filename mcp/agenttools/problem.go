package agenttools

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/agora-relay/agora"
	"github.com/agora-relay/agora/client"
)

// maxProblem bounds the bytes that another agent has in a sentence about an error.
const maxProblem = 1024

// problem says in a sentence to a model what has gone wrong with a call, and what it can do next.
func (t *Catalog) problem(x tool, err error) string {
	who := fmt.Sprintf("the tool %q of the agent %q", x.name, x.agent)
	if a, ok := errors.AsType[*client.AnswerError](err); ok && a.Err.Code != agora.Timeout && a.Err.Code != agora.StreamAborted {
		return answered(who, a)
	}
	e := agora.AsError(err)
	said := cut(strings.TrimRight(e.Message, "."), maxProblem)
	switch {
	case errors.Is(err, context.Canceled), errors.Is(err, client.ErrCancelled):
		return fmt.Sprintf("The call of %s was cancelled.", who)
	case errors.Is(err, context.DeadlineExceeded), e.Code == agora.Timeout:
		return fmt.Sprintf("%s has not answered in time (%s at most); it may have done its work or not. Check that before calling it again, or ask for less.", upper(who), t.cfg.CallTimeout)
	case errors.Is(err, client.ErrUnknown):
		return fmt.Sprintf("The connection was lost while %s was called; it may have done its work or not. Check that before calling it again.", who)
	}
	switch e.Code {
	case agora.AgentNotFound, agora.AgentOffline:
		return fmt.Sprintf("The agent %q is not there any more. List the tools again, and call that of another agent.", x.agent)
	case agora.NotFound:
		return fmt.Sprintf("The agent %q has no tool %q any more. List the tools again, and call another one.", x.agent, x.name)
	case agora.InvalidRequest:
		return fmt.Sprintf("%s was not called: %s. Correct the arguments by the tool's schema and call it again.", upper(who), said)
	case agora.MessageTooLarge:
		return fmt.Sprintf("%s was not called, as its arguments are too large. Call it with less.", upper(who))
	case agora.Forbidden, agora.Unauthorized:
		return fmt.Sprintf("This agent may not call %s: %s. Do without it, or tell the user that an operator has to allow it.", who, said)
	case agora.RateLimited:
		return fmt.Sprintf("%s was not called, as too many calls are made: %s. Wait for those that are under way, then call it again.", upper(who), said)
	case agora.StreamAborted:
		return fmt.Sprintf("%s has not given its whole answer: %s. It may have done its work or not; check that before calling it again.", upper(who), said)
	}
	return fmt.Sprintf("The cluster can't call %s now: %s. It may have done its work or not. Try again in some seconds, and tell the user if that fails too.", who, said)
}

// answered is the sentence for an error that an agent has answered with.
func answered(who string, a *client.AnswerError) string {
	at := ""
	if a.Path != "" {
		at = " at " + cut(a.Path, maxProblem)
	}
	said := cut(strings.TrimRight(a.Err.Message, "."), maxProblem)
	if said == "" {
		said = "it gave no reason"
	}
	return fmt.Sprintf("%s answered with the error %s%s: %s. Correct the arguments if they are the cause; else do without it, or tell the user.", upper(who), cut(string(a.Err.Code), 64), at, said)
}

// upper returns s with its first letter, which is one of ASCII, in upper case.
func upper(s string) string { return strings.ToUpper(s[:1]) + s[1:] }
