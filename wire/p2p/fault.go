package p2p

import (
	"bytes"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"

	"github.com/agora-relay/agora"
	"github.com/agora-relay/agora/internal/rawjson"
)

// Fault is a failure in the way of these protocols: {"error": text, "code": number} in place of an answer. The numbers that are
// written are 400, 403, 404, 405, 408, 413, 500, 502 and 504.
type Fault struct {
	Code int
	Err  *agora.Error // as agents of other dialects see it; its Message is the text
}

// Error returns number and text.
func (f *Fault) Error() string { return strconv.Itoa(f.Code) + ": " + f.Err.Message }

// Unwrap returns the error as agents of other dialects see it.
func (f *Fault) Unwrap() error { return f.Err }

// MaxFault bounds the bytes of an answer that [ParseFault] may find to be a failure: what is longer is none.
const MaxFault = 8 << 10

// codes are the numbers, and the code that each stands for.
var codes = map[int]agora.Code{
	http.StatusBadRequest:            agora.InvalidRequest,
	http.StatusForbidden:             agora.Forbidden,
	http.StatusNotFound:              agora.NotFound,
	http.StatusMethodNotAllowed:      agora.InvalidRequest,
	http.StatusRequestTimeout:        agora.Timeout,
	http.StatusRequestEntityTooLarge: agora.MessageTooLarge,
	http.StatusInternalServerError:   agora.StreamAborted,
	http.StatusBadGateway:            agora.StreamAborted,
	http.StatusGatewayTimeout:        agora.Timeout,
}

// others are numbers that only other implementations write.
var others = map[int]agora.Code{
	http.StatusUnauthorized:       agora.Unauthorized,
	http.StatusTooManyRequests:    agora.RateLimited,
	http.StatusServiceUnavailable: agora.Unavailable,
}

// NewFault returns the failure of a number, which is one of those that are written, with a text.
func NewFault(code int, format string, args ...any) *Fault {
	return &Fault{Code: code, Err: agora.Errorf(CodeOf(code), format, args...)}
}

// FaultOf returns err as a failure: the [Fault] in its chain, or that of the [agora.Error] which [agora.AsError] finds; nil for nil.
func FaultOf(err error) *Fault {
	if f, ok := errors.AsType[*Fault](err); ok {
		return f
	}
	e := agora.AsError(err)
	if e == nil {
		return nil
	}
	return &Fault{Code: Number(e.Code.Status().HTTP), Err: e}
}

// Number returns the number that tells of a status of HTTP: itself where it is one that is written; else 403 for 401, 502 for what is no failure but was no
// answer either, and 400 or 500 as its class is.
func Number(status int) int {
	switch _, ok := codes[status]; {
	case ok:
		return status
	case status == http.StatusUnauthorized:
		return http.StatusForbidden
	case status >= 500 && status < 600:
		return http.StatusInternalServerError
	case status >= 400 && status < 500:
		return http.StatusBadRequest
	}
	return http.StatusBadGateway
}

// CodeOf returns the code that a number stands for: INVALID_REQUEST for one below 500 that nothing is known of, STREAM_ABORTED for others.
func CodeOf(number int) agora.Code {
	if c, ok := codes[number]; ok {
		return c
	}
	if c, ok := others[number]; ok {
		return c
	}
	if number < 500 {
		return agora.InvalidRequest
	}
	return agora.StreamAborted
}

// AppendFault appends err as it is written in place of an answer: see [FaultOf], and [Number] for a number that others have written. It is at most [MaxFault] bytes, and ends without a line break.
func AppendFault(dst []byte, err error) []byte {
	f := FaultOf(err)
	if f == nil {
		return dst
	}
	dst = rawjson.AppendString(append(dst, `{"error":`...), cut(f.Err.Message, maxText))
	dst = strconv.AppendInt(append(dst, `,"code":`...), int64(Number(f.Code)), 10)
	return append(dst, '}')
}

// ParseFault returns the failure that a whole answer is: an object of exactly the two members "error", a string, and "code", an integer from 400 to 599, in
// either order. Any other answer is none, and is the agent's own.
func ParseFault(answer []byte) (*Fault, bool) {
	answer = bytes.Trim(answer, " \t\r\n")
	if len(answer) == 0 || len(answer) > MaxFault || answer[0] != '{' || rawjson.BadUTF8(answer) >= 0 {
		return nil, false
	}
	var text, number []byte
	o := rawjson.NewObject(answer, 1)
	for members := 1; o.Next(); members++ {
		switch name := string(o.Name()); {
		case members > 2:
			return nil, false
		case name == "error" && o.Val[0] == '"':
			text = o.Val
		case name == "code":
			number = o.Val
		default:
			return nil, false
		}
	}
	code, ok := rawjson.Integer(number, 400, 600)
	if !o.End() || text == nil || number == nil || !ok {
		return nil, false
	}
	return NewFault(int(code), "%s", rawjson.Unquote(text)), true
}

// cut returns the beginning of a text, at most so many runes of valid UTF-8.
func cut(s string, most int) string {
	s = strings.ToValidUTF8(s, "\uFFFD")
	for i := range s {
		if most == 0 {
			return s[:i]
		}
		most--
	}
	return s
}

// malformed returns the failure of what is no request, or none that can be done.
func malformed(format string, args ...any) *Fault {
	return NewFault(http.StatusBadRequest, format, args...)
}

// broken returns the failure of a request that did not come whole, and why for the log.
func broken(cause error) *Fault {
	f := malformed("the request breaks off")
	f.Err.Cause = fmt.Errorf("read request: %w", cause)
	return f
}
