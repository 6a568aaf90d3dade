package agora

import (
	"strconv"
	"strings"
	"time"
)

// Kind says what a message is to its receiver.
type Kind uint8

// The kinds. A number never changes its meaning: kinds stand in stored records.
const (
	Request Kind = iota // sent by an agent to another
	Reply               // sent back by an agent
	Event               // published into a space
	Roster              // who joined or left a space: see [RosterBody]
	Receipt             // tells a sender what became of its messages: see [ReceiptBody]
	Control             // a cancel by the receiver of a stream, told to its sender
	Gap                 // made by the broker on reading: messages up to Seq may be lost; never stored
)

// Part says which part of a stream a message is.
type Part uint8

// The parts. A number never changes its meaning: parts stand in stored records.
const (
	Whole  Part = iota // not a stream
	Start              // opens the stream
	Chunk              // a piece of it
	End                // its normal end
	Cancel             // given up by the agent; nothing of it follows
	Abort              // given up by the cluster: see [AbortBody]; nothing of it follows
)

// Ends reports whether nothing of the stream follows the part.
func (p Part) Ends() bool { return p >= End }

// Receipts is the set of tiers that a sender wants to be told of.
type Receipts uint8

// The tiers.
const (
	Stored    Receipts = 1 << iota // JetStream has acknowledged it
	Delivered                      // written to a socket of the receiver
	Acked                          // the receiver is known to have it
)

// Message is the one thing that travels between edges.
type Message struct {
	ID      string  // idempotency key; the lane drops a second message with it
	N       uint64  // number in its lane, from 1; 0 when the sender does not number
	Kind    Kind    //
	Part    Part    //
	Again   bool    // may have been stored before: nobody can know any more
	Indexed bool    // whether Index is set
	Index   uint32  // position of a part in its stream, from 0; may be NextIndex while it is not stored
	Stream  string  // ties the parts together; a space's event id
	From    AgentID // set by the edge, never by the agent
	Session string  // the sender's session; set by its lane, empty outside one
	To      Address // an agent or a space
	Body    []byte  // passed through untouched; nil when there is none
	Media   string  // media type of Body; empty means JSON, and in an Abort its code
	Meta    Meta    //
	Seq     uint64  // position in the addressee's log; set by the broker
}

// ClientID returns the id that the message's client has given it: ID without what the cluster adds to that.
func (m *Message) ClientID() string {
	id, _, _ := strings.Cut(m.ID, "\x00")
	return id
}

// Meta is what travels with a message beside its body.
type Meta struct {
	Trace    string    // W3C traceparent; empty when there is none
	Parent   string    // id of the message that this one answers
	Request  string    // the request that is sent or answered, as its sender names it beside the body; empty where the body says it
	Hops     uint8     // hop budget left; 0 means none is set
	Receipts Receipts  // tiers beyond Stored that the sender wants
	Deadline time.Time // when the stream or request is over; zero means never
	Call     string    // answer box of the call that a request belongs to; empty where it belongs to none
	Dialect  string    // whose Head that is; empty where there is no Head
	Head     []byte    // what that dialect says beside the body: opaque, and of no meaning to doors of other dialects; nil for nothing
}

// Bounds of what Meta carries for doors, in bytes. A message beyond them is not stored.
const (
	MaxRequest = 1 << 10  // of Meta.Request: 256 characters
	MaxCall    = 512      // of Meta.Call
	MaxDialect = 32       // of Meta.Dialect
	MaxHead    = 64 << 10 // of Meta.Head
)

// NextIndex is the Index of a part that continues with its stream, at whatever position that is. It is for senders that
// name each part by an ID, and say none before they know that the one before it is stored: so their streams have no
// hole either.
const NextIndex uint32 = 1<<32 - 1

// SeqShift is how far a record's stream sequence is shifted in a Seq; below
// it stands the message's index in the record.
const SeqShift = 8

// MaxSeq is the first position that JSON could not carry exactly.
const MaxSeq = 1 << 53

// itemParameter is the parameter of a media type that says which item of a stream a body is a part of.
const itemParameter = ";item="

// ItemMedia returns a media type that says of which item of its stream a body is a part, counted from 1: the parts of
// one item are put together in their order. 0 is a body that is an item by itself.
func ItemMedia(media string, item uint32) string {
	if item == 0 {
		return media
	}
	return media + itemParameter + strconv.FormatUint(uint64(item), 10)
}

// SplitItem returns a media type without its item, and that; 0 where it has none.
func SplitItem(media string) (bare string, item uint32) {
	at := strings.LastIndex(media, itemParameter)
	if at < 0 {
		return media, 0
	}
	n, err := strconv.ParseUint(media[at+len(itemParameter):], 10, 32)
	if err != nil || n == 0 || ItemMedia(media[:at], uint32(n)) != media {
		return media, 0
	}
	return media[:at], uint32(n)
}
