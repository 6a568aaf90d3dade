package wire

import (
	"bytes"
	"encoding/json"
	"slices"

	"github.com/agora-relay/agora"
	"github.com/agora-relay/agora/internal/rawjson"
)

// maxReplyError bounds the bytes of a payload that [ReplyError] may find to be an error.
const maxReplyError = 64 << 10

// AppendReplyError appends the payload of a reply that says that there is no answer, and why.
func AppendReplyError(dst []byte, e *agora.Error) []byte {
	dst = rawjson.AppendString(append(dst, `{"error":{"code":`...), string(e.Code))
	dst = rawjson.AppendString(append(dst, `,"message":`...), e.Message)
	return append(dst, `}}`...)
}

// ReplyError returns the error that the payload of a reply says in place of an answer: {"error":{"code","message"}}, with a code of Agora's, and
// beside it nothing but the request's name. Any other payload is an answer: then it is nil.
func ReplyError(payload []byte) *agora.Error {
	if len(payload) > maxReplyError || !bytes.Contains(payload, []byte(`"error"`)) {
		return nil
	}
	var members map[string]json.RawMessage
	if json.Unmarshal(payload, &members) != nil {
		return nil
	}
	said := members["error"]
	delete(members, "error")
	delete(members, "request_id")
	var e struct {
		Code    agora.Code
		Message *string
	}
	if len(members) > 0 || json.Unmarshal(said, &e) != nil || e.Message == nil || !slices.Contains(agora.Codes(), e.Code) {
		return nil
	}
	return &agora.Error{Code: e.Code, Message: *e.Message}
}
