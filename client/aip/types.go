package aip

import wire "github.com/agora-relay/agora/wire/aip"

// Messages of the wire, by the names that they have here. Their methods are those of [wire.AgentMessage] and the
// others.
type (
	Message      = wire.AgentMessage // one message of a session
	ContentItem  = wire.ContentItem  // one piece of content, made by [Text], [Image], [Audio] and [Embedded]
	TaskInfo     = wire.TaskInfo     // the task that a message is about, made by [NewTask]
	Peer         = wire.Peer         // a node: an AgentInfo or a ToolBoxInfo
	AgentInfo    = wire.AgentInfo
	AgentSkill   = wire.AgentInfo_AgentSkill
	ToolBoxInfo  = wire.ToolBoxInfo
	ToolInfo     = wire.ToolInfo
	ToolRequest  = wire.ToolRequest
	ToolResponse = wire.ToolResponse
	NodeUpdate   = wire.NodeUpdate // one change of a node
)

// Mode is a kind of content.
type Mode = wire.Mode

// The kinds of content.
const (
	TextMode     = wire.Mode_TEXT
	ImageMode    = wire.Mode_IMAGE
	AudioMode    = wire.Mode_AUDIO
	EmbeddedMode = wire.Mode_EMBEDDED
)

// SessionStatus is what a message is to its session.
type SessionStatus = wire.AgentMessage_SessionStatus

// What a message is to its session: quests are the initiator's, responses the other's.
const (
	StartQuest   = wire.AgentMessage_START_QUEST
	HoldQuest    = wire.AgentMessage_HOLD_QUEST
	HoldResponse = wire.AgentMessage_HOLD_RESPONSE
	StopQuest    = wire.AgentMessage_STOP_QUEST
	StopResponse = wire.AgentMessage_STOP_RESPONSE
)

// TaskStatus is how far a task is.
type TaskStatus = wire.TaskInfo_TaskStatus

// How far a task is.
const (
	TaskCreate    = wire.TaskInfo_CREATE
	TaskExecuting = wire.TaskInfo_EXECUTING
	TaskWaiting   = wire.TaskInfo_WAITING
	TaskBreak     = wire.TaskInfo_BREAK
	TaskFinish    = wire.TaskInfo_FINISH
)

// UpdateType is what has become of a node.
type UpdateType = wire.NodeUpdate_UpdateType

// What has become of a node.
const (
	Added   = wire.NodeUpdate_ADDED
	Updated = wire.NodeUpdate_UPDATED
	Removed = wire.NodeUpdate_REMOVED
)
