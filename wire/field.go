package wire

import (
	"encoding/json"

	"github.com/agora-relay/agora"
)

// field is one key of the top level of a frame.
type field uint8

const (
	fType field = iota
	fID
	fTimestamp
	fTo
	fFrom
	fStreamID
	fStream
	fIndex
	fN
	fSession
	fPayload
	fChunk
	fReceipts
	fDeadline
	fAgent
	fName
	fEndpoint
	fAgents
	fSpace
	fEventID
	fData
	fMembers
	fJoined
	fLeft
	fSpaces
	fHistory
	fCode
	fMessage
	fRequestID
	fStatus
	fRetryAfter
	fAfter
	fSeq
	fLastSeq
	fMaxFrame
	fFromSeq
	fToSeq
	fRedelivered
	fResumeToken
	fHeartbeat
	fNextN
	fSpaceNextN
	fResumed
	fToken
	fExpires
	fTraceparent
	fSkill
	fGoal
	fLimit
	fMedia
	fItem
	fToolName
	fArguments
	fParentID
	fBody
	fError
	fCard
	fMethod
	fPath
	fParams
	fInput
	fPageAfter
	fNext
	fLeftOut
	fieldCount
)

// kind says what the value of a field is, in JSON and in Frame.
type kind uint8

const (
	kText     kind = iota // a string, bounded by Limits.Name
	kLongText             // a string, bounded by maxLongText
	kToken                // a string, bounded by maxToken
	kAgentID              // a string that is an agent id
	kBool                 // true or false
	kNumber               // an integer from min below 2^53, in a uint64
	kMillis               // the same in an int64
	kIndex                // an integer below 2^32
	kCount                // an integer below 2^31
	kSeconds              // a number
	kAny                  // any value, raw
	kString               // a string, raw
	kObject               // an object, raw
	kTiers                // a list of receipt tiers
	kCard                 // an Agent
	kCards                // a list of ListedAgent
	kTexts                // a list of strings
	kMaybe                // a string or null
	kSpaces               // a list of ListedSpace, or positions by space
	kFailure              // a Failure
	kPath                 // a string, bounded by maxPath
	kCode                 // a string, bounded by Limits.Name; in handoff.result a number
)

// maxLongText bounds, in runes, texts that are no names: endpoints, messages.
const maxLongText = 2048

// maxPath bounds, in runes, the path of a request that is handed off, query included.
const maxPath = 64 << 10

// maxToken bounds, in runes, credentials: some name many groups.
const maxToken = 16 << 10

// spec is what is known of a field, whatever frame it stands in.
type spec struct {
	key  string
	kind kind
	min  uint64 // of a number
}

var fields = [fieldCount]spec{
	fType:        {key: "type", kind: kText},
	fID:          {key: "id", kind: kText},
	fTimestamp:   {key: "timestamp", kind: kAny},
	fTo:          {key: "to", kind: kAgentID},
	fFrom:        {key: "from", kind: kAgentID},
	fStreamID:    {key: "stream_id", kind: kText},
	fStream:      {key: "stream", kind: kBool},
	fIndex:       {key: "index", kind: kIndex},
	fN:           {key: "n", kind: kNumber, min: 1},
	fSession:     {key: "session", kind: kText},
	fPayload:     {key: "payload", kind: kAny},
	fChunk:       {key: "chunk", kind: kString},
	fReceipts:    {key: "receipts", kind: kTiers},
	fDeadline:    {key: "deadline_ms", kind: kMillis, min: 1},
	fAgent:       {key: "agent", kind: kCard},
	fName:        {key: "name", kind: kText},
	fEndpoint:    {key: "endpoint", kind: kLongText},
	fAgents:      {key: "agents", kind: kCards},
	fSpace:       {key: "space", kind: kText},
	fEventID:     {key: "event_id", kind: kText},
	fData:        {key: "data", kind: kObject},
	fMembers:     {key: "members", kind: kTexts},
	fJoined:      {key: "joined", kind: kMaybe},
	fLeft:        {key: "left", kind: kMaybe},
	fSpaces:      {key: "spaces", kind: kSpaces},
	fHistory:     {key: "history", kind: kCount},
	fCode:        {key: "code", kind: kCode},
	fMessage:     {key: "message", kind: kLongText},
	fRequestID:   {key: "request_id", kind: kText},
	fStatus:      {key: "status", kind: kText},
	fRetryAfter:  {key: "retry_after_ms", kind: kMillis},
	fAfter:       {key: "after_ms", kind: kMillis},
	fSeq:         {key: "seq", kind: kNumber},
	fLastSeq:     {key: "last_seq", kind: kNumber},
	fMaxFrame:    {key: "max_frame", kind: kNumber, min: MinMaxFrame},
	fFromSeq:     {key: "from_seq", kind: kNumber},
	fToSeq:       {key: "to_seq", kind: kNumber},
	fRedelivered: {key: "redelivered", kind: kBool},
	fResumeToken: {key: "resume_token", kind: kText},
	fHeartbeat:   {key: "heartbeat_interval", kind: kSeconds},
	fResumed:     {key: "resumed", kind: kBool},
	fNextN:       {key: "next_n", kind: kObject},
	fSpaceNextN:  {key: "space_next_n", kind: kObject},
	fToken:       {key: "token", kind: kToken},
	fExpires:     {key: "expires", kind: kNumber, min: 1},
	fTraceparent: {key: "traceparent", kind: kText},
	fSkill:       {key: "skill", kind: kText},
	fGoal:        {key: "goal", kind: kLongText},
	fLimit:       {key: "limit", kind: kNumber, min: 1},
	fMedia:       {key: "media", kind: kText},
	fItem:        {key: "item", kind: kNumber, min: 1},
	fToolName:    {key: "tool_name", kind: kText},
	fArguments:   {key: "arguments", kind: kAny},
	fParentID:    {key: "parent_id", kind: kText},
	fBody:        {key: "body", kind: kAny},
	fError:       {key: "error", kind: kFailure},
	fCard:        {key: "card", kind: kAny},
	fMethod:      {key: "method", kind: kText},
	fPath:        {key: "path", kind: kPath},
	fParams:      {key: "params", kind: kObject},
	fInput:       {key: "input_data", kind: kAny},
	fPageAfter:   {key: "after", kind: kText},
	fNext:        {key: "next", kind: kText},
	fLeftOut:     {key: "left_out", kind: kTexts},
}

// MinMaxFrame is the least that a client may say of the largest frame that it takes.
const MinMaxFrame = 4096

// byLength are the fields by the lengths of their keys.
var byLength = func() (all [longestKey + 1][]field) {
	for i, s := range fields {
		all[len(s.key)] = append(all[len(s.key)], field(i))
	}
	return all
}()

// longestKey is the length of the longest key.
const longestKey = len("heartbeat_interval")

// fieldOf finds a field by its exact key.
func fieldOf(key []byte) (f field, known bool) {
	if len(key) > longestKey {
		return 0, false
	}
	for _, f := range byLength[len(key)] {
		if fields[f].key == string(key) {
			return f, true
		}
	}
	return 0, false
}

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
