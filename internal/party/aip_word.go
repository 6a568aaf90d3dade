package party

import (
	"encoding/json"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/agora-relay/agora"
	"github.com/agora-relay/agora/internal/agoratest"
	wire "github.com/agora-relay/agora/wire/aip"
)

func aipText(text []byte) *wire.ContentItem {
	return &wire.ContentItem{Data: &wire.ContentItem_Text{Text: string(text)}}
}

// aipContent is a payload as content: a JSON string is a text, and all else is a text that is JSON.
func aipContent(payload []byte) []*wire.ContentItem {
	var text string
	switch {
	case payload == nil:
		return nil
	case payload[0] == '"' && json.Unmarshal(payload, &text) == nil:
		return []*wire.ContentItem{aipText([]byte(text))}
	}
	return []*wire.ContentItem{aipText(payload)}
}

// aipBody is content as a payload.
func aipBody(content []*wire.ContentItem) []byte {
	if len(content) == 0 {
		return nil
	}
	text := content[0].GetText()
	if text != "" && text[0] != '"' && json.Valid([]byte(text)) {
		return []byte(text)
	}
	return []byte(agoratest.Quote(text))
}

// aipCodes are what statuses mean.
var aipCodes = map[codes.Code]agora.Code{
	codes.InvalidArgument:  agora.InvalidRequest,
	codes.Unauthenticated:  agora.Unauthorized,
	codes.PermissionDenied: agora.Forbidden,
	codes.AlreadyExists:    agora.AgentExists,
	codes.NotFound:         agora.AgentNotFound,
	codes.DeadlineExceeded: agora.Timeout,
	codes.Unavailable:      agora.Unavailable,
	codes.Aborted:          agora.StreamAborted,
	codes.Canceled:         agora.StreamAborted,
}

// aipCode says a status in words of the suite. A session that stood is given up when its other end can't be reached any
// more; what is too much is too large, unless it may be tried again.
func aipCode(err error, stood bool) agora.Code {
	s := status.Convert(err)
	switch code, is := aipCodes[s.Code()]; {
	case s.Code() == codes.ResourceExhausted && len(s.Details()) > 0:
		return agora.RateLimited
	case s.Code() == codes.ResourceExhausted:
		return agora.MessageTooLarge
	case code == agora.Unavailable && stood:
		return agora.StreamAborted
	case is:
		return code
	}
	return agora.Code(s.Code().String())
}

func aipError(err error) error {
	return agora.Errorf(aipCode(err, false), "%s", status.Convert(err).Message())
}
