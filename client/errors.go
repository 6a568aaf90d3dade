package client

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/agora-relay/agora"
	"github.com/agora-relay/agora/wire"
	"github.com/gorilla/websocket"
)

// ErrClosed is returned by everything once Close was called.
var ErrClosed = errors.New("client is closed")

// ErrUnknown says that a message was sent, that the connection was lost before
// its receipt came, and that the session ended before the client was back: it
// may have been stored or not. Anyone who sends it again may send it twice.
var ErrUnknown = errors.New("session ended before the receipt: the message may have been stored or not")

// ErrCancelled is returned by a stream that either side has cancelled.
var ErrCancelled = errors.New("stream was cancelled")

// ErrLeft ends the events of a space that the client has left.
var ErrLeft = errors.New("the space was left")

// ErrTakenOver ends a client whose agent id another connection has taken over, unless that may be one of its own
// that came through late.
var ErrTakenOver = errors.New("another connection took over the agent id")

// ErrKicked is why a connection was lost when an operator has ended the session. The client comes back, in a new one.
var ErrKicked = errors.New("an operator has ended the session")

// Close codes that end or delay a client.
const (
	closeTakenOver = 4001
	closeExists    = 4009
	closeKicked    = 4010
)

// errMoved ends a connection because the edge asked its agents to go elsewhere.
var errMoved = errors.New("the edge asked to reconnect")

// frameError returns the error that an error frame tells.
func frameError(f *wire.Frame) *agora.Error {
	return &agora.Error{
		Code:       agora.Code(f.Code),
		Message:    f.Message,
		RetryAfter: time.Duration(f.RetryAfterMS) * time.Millisecond,
	}
}

// errBroke ends a connection without a word of the edge.
var errBroke = &agora.Error{Code: agora.Unavailable, Message: "the connection broke"}

// closeError turns the end of a socket into what it means, where its close
// code says so, and returns other errors as they are.
func closeError(err error) error {
	e, ok := errors.AsType[*websocket.CloseError](err)
	if !ok {
		return err
	}
	switch e.Code {
	case closeTakenOver:
		return ErrTakenOver
	case closeKicked:
		return ErrKicked
	case closeExists:
		return agora.Errorf(agora.AgentExists, "another connection has the agent id")
	case websocket.ClosePolicyViolation: // too many errors, or credentials that ended; whoever may not connect is told in the handshake
		return &agora.Error{Code: agora.Unavailable, Message: "the edge closed the connection: " + e.Text, RetryAfter: time.Second}
	case websocket.CloseTryAgainLater:
		return &agora.Error{Code: agora.Unavailable, Message: "the edge takes no connections now", RetryAfter: time.Second}
	case websocket.CloseAbnormalClosure: // none came
		return errBroke
	}
	return &agora.Error{Code: agora.Unavailable, Message: fmt.Sprintf("the edge closed the connection: %s (close code %d)", e.Text, e.Code)}
}

// handshakeError turns a refused upgrade into what it means.
func handshakeError(err error, r *http.Response) error {
	if r == nil {
		return &agora.Error{Code: agora.Unavailable, Message: "no connection to the edge", Cause: err}
	}
	e := reason(r)
	seconds, _ := strconv.Atoi(r.Header.Get("Retry-After"))
	e.RetryAfter = time.Duration(seconds) * time.Second
	return e
}

// reason is why an upgrade was refused: in the edge's own words, or by the status where something before the edge has
// answered.
func reason(r *http.Response) *agora.Error {
	body, _ := io.ReadAll(io.LimitReader(r.Body, maxReason)) // of a broken answer there is the status
	code, message, ok := strings.Cut(strings.TrimSpace(string(body)), ": ")
	if ok && slices.Contains(agora.Codes(), agora.Code(code)) {
		return &agora.Error{Code: agora.Code(code), Message: message}
	}
	e := &agora.Error{Code: agora.Unavailable, Message: "the edge refused the connection: " + r.Status}
	switch r.StatusCode {
	case http.StatusUnauthorized:
		e.Code = agora.Unauthorized
	case http.StatusForbidden:
		e.Code = agora.Forbidden
	case http.StatusBadRequest:
		e.Code = agora.InvalidRequest
	case http.StatusTooManyRequests:
		e.Code = agora.RateLimited
	case http.StatusNotFound:
		e.Code = agora.NotFound
	}
	return e
}

const maxReason = 4 << 10

// final reports whether trying to connect again is of no use.
func final(err error) bool {
	if errors.Is(err, ErrTakenOver) || errors.Is(err, ErrClosed) {
		return true
	}
	e, ok := errors.AsType[*agora.Error](err)
	if !ok {
		return false
	}
	switch e.Code {
	case agora.Unauthorized, agora.Forbidden, agora.AgentExists, agora.InvalidRequest:
		return true
	}
	return false
}

// retryAfter returns how long the other side asked to wait.
func retryAfter(err error) time.Duration {
	if e, ok := errors.AsType[*agora.Error](err); ok {
		return e.RetryAfter
	}
	return 0
}
