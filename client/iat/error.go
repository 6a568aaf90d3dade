package iat

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/agora-relay/agora"
)

// ErrClosed is returned by everything once Close was called.
var ErrClosed = errors.New("client is closed")

// ErrCancelled is why the context of a handler ended whose request its asker has given up.
var ErrCancelled = errors.New("the request was cancelled")

// Failed is the code of an error that a handler has returned without one.
const Failed agora.Code = "FAILED"

// cluster is the cluster itself, as sender and as addressee.
const cluster = string(agora.Cluster)

// Error is why an edge refused something, or what an agent answered instead of a result. [errors.AsType] finds an
// [agora.Error] in it as well.
type Error struct {
	Code       agora.Code    // any word where an agent says it
	Message    string        //
	Path       string        // JSON pointer to the place in the envelope; may be empty
	RetryAfter time.Duration // when trying again makes sense; 0: nothing is known
	HTTP       int           // status; 0 where there was none
	From       string        // who says so: "agora" for the cluster, else an agent; empty where nobody has answered
	Cause      error         // what broke; may be nil
}

// Error returns code, message and place.
func (e *Error) Error() string {
	s := fmt.Sprintf("%s: %s", e.Code, e.text())
	if e.Cause != nil {
		s += ": " + e.Cause.Error()
	}
	return s
}

// Unwrap returns the error as an [agora.Error].
func (e *Error) Unwrap() error {
	return &agora.Error{Code: e.Code, Message: e.text(), RetryAfter: e.RetryAfter, Cause: e.Cause}
}

// text returns the message, with the place where it does not name that itself.
func (e *Error) text() string {
	if e.Path == "" || strings.Contains(e.Message, e.Path) {
		return e.Message
	}
	return e.Message + " (" + e.Path + ")"
}

// broke returns the error of a connection that broke, or was never made.
func broke(cause error) *Error {
	return &Error{Code: agora.Unavailable, Message: "the connection to the edge broke", Cause: cause}
}

// fault is payload.error.
type fault struct {
	Code       agora.Code `json:"code"`
	Message    string     `json:"message"`
	Path       string     `json:"path,omitempty"`
	RetryAfter int64      `json:"retry_after_ms,omitempty"`
}

// faultOf returns the error that an envelope says; nil where it says none.
func faultOf(e *Envelope) *Error {
	if e.Header.Type != Response || !bytes.Contains(e.Payload, []byte(`"error"`)) {
		return nil
	}
	var p struct{ Error *fault }
	if json.Unmarshal(e.Payload, &p) != nil || p.Error == nil || p.Error.Code == "" {
		return nil
	}
	return &Error{
		Code: p.Error.Code, Message: p.Error.Message, Path: p.Error.Path, From: e.Header.From,
		RetryAfter: time.Duration(p.Error.RetryAfter) * time.Millisecond,
	}
}

// faultFrom returns an error of a handler as an envelope says it.
func faultFrom(err error) fault {
	if e, ok := errors.AsType[*Error](err); ok {
		return fault{Code: e.Code, Message: e.Message, Path: e.Path}
	}
	if e, ok := errors.AsType[*agora.Error](err); ok {
		return fault{Code: e.Code, Message: e.Message}
	}
	return fault{Code: Failed, Message: err.Error()}
}

const maxRefusal = 64 << 10 // bytes of a refusal that are read

// refusal returns what an answer says that is no success: in the edge's own words, or by its status where something
// before the edge has answered.
func refusal(r *http.Response) *Error {
	b, _ := io.ReadAll(io.LimitReader(r.Body, maxRefusal)) // of a broken answer there is the status
	var envelope Envelope
	var e *Error
	if json.Unmarshal(b, &envelope) == nil {
		e = faultOf(&envelope)
	}
	if e == nil {
		e = &Error{Code: codeOf(r.StatusCode), Message: "the edge answered " + r.Status}
	}
	e.HTTP = r.StatusCode
	if seconds, err := strconv.Atoi(r.Header.Get("Retry-After")); err == nil && e.RetryAfter == 0 {
		e.RetryAfter = time.Duration(seconds) * time.Second
	}
	return e
}

// codeOf returns the code of a status that has no words.
func codeOf(status int) agora.Code {
	switch status {
	case http.StatusUnauthorized:
		return agora.Unauthorized
	case http.StatusForbidden:
		return agora.Forbidden
	case http.StatusNotFound:
		return agora.NotFound
	case http.StatusConflict:
		return agora.AgentExists
	case http.StatusRequestEntityTooLarge:
		return agora.MessageTooLarge
	case http.StatusTooManyRequests:
		return agora.RateLimited
	}
	if status >= http.StatusInternalServerError {
		return agora.Unavailable
	}
	return agora.InvalidRequest
}
