package wire

import (
	"encoding/json"

	"github.com/agora-relay/agora"
)

// tierNames are the tiers of receipts as they are written, in order.
var tierNames = [...]struct {
	tier agora.Receipts
	name string
}{
	{agora.Stored, "stored"},
	{agora.Delivered, "delivered"},
	{agora.Acked, "acked"},
}

// TierName returns the name of one tier, as frames have it; empty for what is none.
func TierName(t agora.Receipts) string {
	for _, known := range tierNames {
		if known.tier == t {
			return known.name
		}
	}
	return ""
}

// TierOf returns the tier of a name, as frames have it; false where it names none.
func TierOf(name string) (agora.Receipts, bool) {
	for _, known := range tierNames {
		if known.name == name {
			return known.tier, true
		}
	}
	return 0, false
}

// text returns where a field of kind kText, kLongText, kToken, kAgentID, kPath or kCode stands.
func (f *Frame) text(id field) *string {
	switch id {
	case fType:
		return &f.Type
	case fID:
		return &f.ID
	case fTo:
		return &f.To
	case fFrom:
		return &f.From
	case fStreamID:
		return &f.StreamID
	case fSession:
		return &f.Session
	case fName:
		return &f.Name
	case fEndpoint:
		return &f.Endpoint
	case fSpace:
		return &f.Space
	case fEventID:
		return &f.EventID
	case fCode:
		return &f.Code
	case fMessage:
		return &f.Message
	case fRequestID:
		return &f.RequestID
	case fStatus:
		return &f.Status
	case fResumeToken:
		return &f.ResumeToken
	case fToken:
		return &f.Token
	case fTraceparent:
		return &f.Traceparent
	case fSkill:
		return &f.Skill
	case fGoal:
		return &f.Goal
	case fMedia:
		return &f.Media
	case fToolName:
		return &f.ToolName
	case fParentID:
		return &f.ParentID
	case fMethod:
		return &f.Method
	case fPath:
		return &f.Path
	case fPageAfter:
		return &f.After
	case fNext:
		return &f.Next
	}
	panic("wire: no text field")
}

// texts returns where a field of kind kTexts stands.
func (f *Frame) texts(id field) *[]string {
	if id == fLeftOut {
		return &f.LeftOut
	}
	return &f.Members
}

// number returns where a field of kind kNumber stands.
func (f *Frame) number(id field) *uint64 {
	switch id {
	case fN:
		return &f.N
	case fSeq:
		return &f.Seq
	case fLastSeq:
		return &f.LastSeq
	case fMaxFrame:
		return &f.MaxFrame
	case fFromSeq:
		return &f.FromSeq
	case fToSeq:
		return &f.ToSeq
	case fExpires:
		return &f.Expires
	case fLimit:
		return &f.Limit
	case fItem:
		return &f.Item
	}
	panic("wire: no number field")
}

// millis returns where a field of kind kMillis stands.
func (f *Frame) millis(id field) *int64 {
	switch id {
	case fDeadline:
		return &f.DeadlineMS
	case fRetryAfter:
		return &f.RetryAfterMS
	case fAfter:
		return &f.AfterMS
	}
	panic("wire: no millisecond field")
}

// flag returns where a field of kind kBool stands.
func (f *Frame) flag(id field) *bool {
	switch id {
	case fStream:
		return &f.Stream
	case fRedelivered:
		return &f.Redelivered
	case fResumed:
		return &f.Resumed
	}
	panic("wire: no flag field")
}

// bytes returns where a field of kind kAny, kString or kObject stands.
func (f *Frame) bytes(id field) *json.RawMessage {
	switch id {
	case fTimestamp:
		return &f.Timestamp
	case fPayload:
		return &f.Payload
	case fChunk:
		return &f.Chunk
	case fData:
		return &f.Data
	case fArguments:
		return &f.Arguments
	case fBody:
		return &f.Body
	case fCard:
		return &f.Card
	case fParams:
		return &f.Params
	case fInput:
		return &f.Input
	case fNextN:
		return &f.NextN
	case fSpaceNextN:
		return &f.SpaceNextN
	}
	panic("wire: no raw field")
}
