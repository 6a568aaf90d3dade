package wire

import (
	"bytes"
	"encoding/json"
	"strings"
	"time"

	"github.com/agora-relay/agora"
	"github.com/agora-relay/agora/internal/rawjson"
)

// RequestIDOf returns the string request_id at the top level of a payload
// (Agora relay §3), for the error of a request that ran out of time. It
// returns "" where the payload is no object or has no such string, has it
// twice, or has one that no id may be: a longer one, or with half a surrogate pair. It looks no closer at a
// payload that can't have one.
func RequestIDOf(payload json.RawMessage) string {
	if len(payload) == 0 || !bytes.Contains(payload, []byte("request_id")) && bytes.IndexByte(payload, '\\') < 0 {
		return ""
	}
	o := rawjson.NewObject(payload, maxDataDepth)
	id, found := "", false
	for o.Next() {
		if string(o.Name()) != "request_id" {
			continue
		}
		if found || o.Val[0] != '"' || rawjson.Halved(o.Val) {
			return ""
		}
		id, found = rawjson.Unquote(o.Val), true
	}
	if o.Failed() || bounded(id, Limits{}.withDefaults().Name) != "" {
		return ""
	}
	return id
}

// ParseReceipts reads tiers as they stand in the connection's URL: their
// names, separated by commas. An unknown name is INVALID_REQUEST.
func ParseReceipts(s string) (agora.Receipts, error) {
	var all agora.Receipts
	for name := range strings.SplitSeq(s, ",") {
		if name = strings.TrimSpace(name); name == "" {
			continue
		}
		tier, ok := TierOf(name)
		if !ok {
			return 0, agora.Errorf(agora.InvalidRequest, "receipts has the unknown tier %.64q", name)
		}
		all |= tier
	}
	return all, nil
}

// Refuse returns the error frame that answers f: the code and message of err
// as an agent may see it, and the fields of f that say which frame it was.
func (f *Frame) Refuse(err error) Frame {
	e := agora.AsError(err)
	answer := Frame{
		Type: "error", Code: string(e.Code), Message: e.Message, RequestID: f.ID,
		To: f.To, StreamID: f.StreamID, Space: f.Space, EventID: f.EventID,
		N: f.N, Index: f.Index, HasIndex: f.HasIndex,
	}
	if e.RetryAfter > 0 {
		answer.RetryAfterMS = int64((e.RetryAfter + time.Millisecond - 1) / time.Millisecond)
	}
	return answer
}
