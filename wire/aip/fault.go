package aip

import (
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/types/known/anypb"

	"github.com/agora-relay/agora"
)

// What AIP says of what is refused, word for word.
const (
	TextFirstNotStart   = "First message must be START_QUEST"
	TextNoSession       = "Missing session_id in START_QUEST"
	TextNoReceiver      = "Receiver not found"
	TextEmpty           = "Empty request stream"
	textAgentExists     = "Agent [%s] already registered."
	textToolboxExists   = "Tool [%s] already registered."
	textAddressExists   = "Address [%s] already registered."
	textNodeUnknown     = "Node %s not registered"
	maxTextOfAnError    = 4 << 10
	typeOfRetryInfo     = "type.googleapis.com/google.rpc.RetryInfo"
	fieldRetryDelay     = 1
	fieldSeconds        = 1
	fieldNanos          = 2
	nanosecondsOfSecond = int64(time.Second)
)

// FirstNotStart returns the error of a session whose first message is another one.
func FirstNotStart() *agora.Error { return agora.Errorf(agora.InvalidRequest, TextFirstNotStart) }

// NoSession returns the error of a session without an id.
func NoSession() *agora.Error { return agora.Errorf(agora.InvalidRequest, TextNoSession) }

// NoReceiver returns the error of a message to nobody.
func NoReceiver() *agora.Error { return agora.Errorf(agora.AgentNotFound, TextNoReceiver) }

// Empty returns the error of a session in which nothing was said.
func Empty() *agora.Error { return agora.Errorf(agora.StreamAborted, TextEmpty) }

// AgentExists returns the error of an agent whose id is taken.
func AgentExists(id string) *agora.Error {
	return agora.Errorf(agora.AgentExists, textAgentExists, id)
}

// ToolboxExists returns the error of a toolbox whose id is taken.
func ToolboxExists(id string) *agora.Error {
	return agora.Errorf(agora.AgentExists, textToolboxExists, id)
}

// AddressExists returns the error of a node whose address is another one's.
func AddressExists(address string) *agora.Error {
	return agora.Errorf(agora.AgentExists, textAddressExists, address)
}

// UnknownNode returns what is said of a node that is not registered.
func UnknownNode(id string) string { return fmt.Sprintf(textNodeUnknown, id) }

// Ending returns the error that the cancel or the abort of a stream means.
func Ending(m *agora.Message) *agora.Error {
	if m.Part == agora.Cancel {
		return agora.Errorf(agora.StreamAborted, "The stream was cancelled")
	}
	switch code := m.AbortBody().Code; code {
	case agora.Timeout:
		return agora.Errorf(agora.Timeout, "The deadline has passed")
	case "":
		return agora.Errorf(agora.StreamAborted, "The stream was given up before its end")
	default:
		return agora.Errorf(code, "The stream was given up before its end")
	}
}

// CodeOf returns how a code of the core shows in gRPC: INTERNAL for one that there is not.
func CodeOf(c agora.Code) codes.Code { return codes.Code(c.Status().GRPC) }

// fromGRPC is what the codes of gRPC mean in the core. Of those that stand for several there it is the one that claims the least.
var fromGRPC = map[codes.Code]agora.Code{
	codes.Canceled:           agora.StreamAborted,
	codes.Unknown:            agora.StreamAborted,
	codes.InvalidArgument:    agora.InvalidRequest,
	codes.DeadlineExceeded:   agora.Timeout,
	codes.NotFound:           agora.NotFound,
	codes.AlreadyExists:      agora.AgentExists,
	codes.PermissionDenied:   agora.Forbidden,
	codes.ResourceExhausted:  agora.RateLimited,
	codes.FailedPrecondition: agora.InvalidRequest,
	codes.Aborted:            agora.StreamAborted,
	codes.OutOfRange:         agora.InvalidRequest,
	codes.Unimplemented:      agora.StreamAborted,
	codes.Internal:           agora.StreamAborted,
	codes.Unavailable:        agora.Unavailable,
	codes.DataLoss:           agora.StreamAborted,
	codes.Unauthenticated:    agora.Unauthorized,
}

// FromCode returns what a gRPC code means in the core; empty for OK, and STREAM_ABORTED for one that gRPC does not have.
func FromCode(c codes.Code) agora.Code {
	switch code, ok := fromGRPC[c]; {
	case c == codes.OK:
		return ""
	case ok:
		return code
	}
	return agora.StreamAborted
}

// Failure returns the error of a call of a node that ended with a status, as agents of other dialects see it; nil for OK. The status' message is
// the node's own, bounded.
func Failure(s *status.Status) *agora.Error {
	code := FromCode(s.Code())
	if code == "" {
		return nil
	}
	return &agora.Error{Code: code, Message: bounded(s.Message(), maxTextOfAnError), Cause: s.Err()}
}

// Status returns an error as a caller of AIP sees it: the code of [agora.AsError], its message, and a RetryInfo where trying again makes sense. OK for nil. In place of what the core
// says of an agent that nobody knows stands AIP's text.
func Status(err error) *status.Status {
	e := agora.AsError(err)
	if e == nil {
		return status.New(codes.OK, "")
	}
	text := e.Message
	if e.Code == agora.AgentNotFound {
		text = TextNoReceiver
	}
	s := status.New(CodeOf(e.Code), text)
	if e.RetryAfter <= 0 {
		return s
	}
	p := s.Proto()
	p.Details = append(p.Details, &anypb.Any{TypeUrl: typeOfRetryInfo, Value: retryInfo(e.RetryAfter)})
	return status.FromProto(p)
}

// retryInfo returns an encoded google.rpc.RetryInfo.
func retryInfo(after time.Duration) []byte {
	var d []byte
	if n := int64(after) / nanosecondsOfSecond; n != 0 {
		d = protowire.AppendVarint(protowire.AppendTag(d, fieldSeconds, protowire.VarintType), uint64(n))
	}
	if n := int64(after) % nanosecondsOfSecond; n != 0 {
		d = protowire.AppendVarint(protowire.AppendTag(d, fieldNanos, protowire.VarintType), uint64(n))
	}
	return appendField(nil, fieldRetryDelay, d)
}

// Deregisters reports whether an agent whose call ends with a code is no node any more: those codes speak of the agent, and others of the call.
func Deregisters(c codes.Code) bool {
	switch c {
	case codes.Internal, codes.Unknown, codes.Unavailable, codes.Unimplemented, codes.DataLoss:
		return true
	}
	return false
}

// bounded returns the beginning of a text, whole runes of at most so many bytes, valid UTF-8.
func bounded(s string, most int) string {
	s = strings.ToValidUTF8(s, "\uFFFD")
	if len(s) <= most {
		return s
	}
	for most > 0 && !utf8.RuneStart(s[most]) {
		most--
	}
	return s[:most]
}

// checkName returns the INVALID_REQUEST of a name that none may be: an empty one, one of too many runes, or with a NUL.
func checkName(what, s string, most int) error {
	switch {
	case s == "":
		return agora.Errorf(agora.InvalidRequest, "%s is empty", what)
	case len(s) > most && utf8.RuneCountInString(s) > most:
		return agora.Errorf(agora.InvalidRequest, "%s is longer than %d characters", what, most)
	case strings.ContainsRune(s, 0):
		return agora.Errorf(agora.InvalidRequest, "%s has the character U+0000", what)
	}
	return nil
}
