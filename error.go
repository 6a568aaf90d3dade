package agora

import (
	"errors"
	"fmt"
	"net/http"
	"time"
)

// Code names an error to agents; PROTOCOL.md lists when each is sent.
type Code string

// The codes.
const (
	InvalidRequest  Code = "INVALID_REQUEST"
	Unauthorized    Code = "UNAUTHORIZED"
	AgentExists     Code = "AGENT_EXISTS"
	SpaceNotFound   Code = "SPACE_NOT_FOUND"
	SpaceFull       Code = "SPACE_FULL"
	RateLimited     Code = "RATE_LIMITED"
	AgentNotFound   Code = "AGENT_NOT_FOUND"
	AgentOffline    Code = "AGENT_OFFLINE"
	Forbidden       Code = "FORBIDDEN"
	StreamAborted   Code = "STREAM_ABORTED"
	StreamNotFound  Code = "STREAM_NOT_FOUND"
	MessageTooLarge Code = "MESSAGE_TOO_LARGE"
	Unavailable     Code = "UNAVAILABLE"
	Timeout         Code = "TIMEOUT"
	NotFound        Code = "NOT_FOUND" // a tool, an approval
)

// Status is how one code shows in the protocols that have codes of their own.
type Status struct {
	HTTP int    // status of a response
	GRPC uint32 // google.golang.org/grpc/codes
}

// statuses is the one table from codes to the codes of other protocols.
var statuses = map[Code]Status{
	InvalidRequest:  {HTTP: http.StatusBadRequest, GRPC: 3},
	Unauthorized:    {HTTP: http.StatusUnauthorized, GRPC: 16},
	AgentExists:     {HTTP: http.StatusConflict, GRPC: 6},
	SpaceNotFound:   {HTTP: http.StatusNotFound, GRPC: 5},
	SpaceFull:       {HTTP: http.StatusConflict, GRPC: 8},
	RateLimited:     {HTTP: http.StatusTooManyRequests, GRPC: 8},
	AgentNotFound:   {HTTP: http.StatusNotFound, GRPC: 5},
	AgentOffline:    {HTTP: http.StatusNotFound, GRPC: 14},
	Forbidden:       {HTTP: http.StatusForbidden, GRPC: 7},
	StreamAborted:   {HTTP: http.StatusBadGateway, GRPC: 10},
	StreamNotFound:  {HTTP: http.StatusNotFound, GRPC: 5},
	MessageTooLarge: {HTTP: http.StatusRequestEntityTooLarge, GRPC: 8},
	Unavailable:     {HTTP: http.StatusServiceUnavailable, GRPC: 14},
	Timeout:         {HTTP: http.StatusGatewayTimeout, GRPC: 4},
	NotFound:        {HTTP: http.StatusNotFound, GRPC: 5},
}

// Status returns how c shows elsewhere; an unknown code shows as an internal error.
func (c Code) Status() Status {
	if s, ok := statuses[c]; ok {
		return s
	}
	return Status{HTTP: http.StatusInternalServerError, GRPC: 13}
}

// Codes returns every code that there is.
func Codes() []Code {
	codes := make([]Code, 0, len(statuses))
	for c := range statuses {
		codes = append(codes, c)
	}
	return codes
}

// Error is an error as an agent sees it. Its cause is for our log alone.
type Error struct {
	Code       Code
	Message    string        // one sentence for the agent: no payload, no token, no internals
	RetryAfter time.Duration // when trying again makes sense; 0 means nothing is known
	Cause      error         // for the log; never sent
}

// Error returns code, message and cause, for a log.
func (e *Error) Error() string {
	if e.Cause != nil {
		return fmt.Sprintf("%s: %s: %v", e.Code, e.Message, e.Cause)
	}
	return fmt.Sprintf("%s: %s", e.Code, e.Message)
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Cause }

// Passes reports whether the same thing, said again in a moment, may be taken: an edge that refuses a number so waits
// for it to come again. That is UNAVAILABLE, and RATE_LIMITED with a time.
func (e *Error) Passes() bool {
	return e.Code == Unavailable || e.Code == RateLimited && e.RetryAfter > 0
}

// Errorf returns an error for an agent with a message made like [fmt.Sprintf]'s.
func Errorf(code Code, format string, args ...any) *Error {
	return &Error{Code: code, Message: fmt.Sprintf(format, args...)}
}

// UnknownAgent returns the AGENT_NOT_FOUND error for an agent that nobody knows, in the words that it has everywhere.
func UnknownAgent(id AgentID) *Error { return Errorf(AgentNotFound, "Agent '%s' does not exist", id) }

// AsError returns err as an agent may see it: the [Error] in its chain, or an
// [Unavailable] one that hides everything else behind it. It returns nil for nil.
func AsError(err error) *Error {
	if err == nil {
		return nil
	}
	if e, ok := errors.AsType[*Error](err); ok {
		return e
	}
	return &Error{Code: Unavailable, Message: "the cluster can't do this now", RetryAfter: time.Second, Cause: err}
}
