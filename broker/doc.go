// Package broker keeps every message in JetStream and hands it to whoever
// listens for its address, in order and without gaps.
//
// A [Lane] sends: one record is being stored at a time, what arrives meanwhile
// gathers into the next. An [Inbox] receives: live messages come by core NATS,
// and whatever that missed is read from the log. The log is the truth; every
// live message is only a hint that it has grown.
//
// A lane may change hands between edges at any moment, with the old edge
// still sending. So each lane has a subject of its own beside the mailbox, the
// fence: a new holder writes its epoch there, and every record names the
// fence's sequence that it expects. The server refuses the old holder's records
// from then on, so what the new holder then reads of the log is final.
package broker
