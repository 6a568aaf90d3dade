package agora

import "encoding/binary"

// ReceiptBody is what a Receipt says: a message, and all before it that it is counted with, has reached a tier. The
// agent that the message was sent to is the Receipt's From. The message is named as its sender named it, by one of ID,
// N and Stream.
type ReceiptBody struct {
	Tier    Receipts // one of the tiers
	ID      string   // the client's id of one message
	Session string   // the sender's session, in which N counts
	N       uint64   // all messages to From up to this number
	Stream  string   // the stream in which Index counts
	Index   uint32   // all parts of Stream up to this one
}

// Undelivered is the Tier of a Receipt that says that a message will reach no other: its receiver takes no frame as
// large. It can't be asked for, and names one message, by its ID, and by Session and N where it has a number; neither
// where its sender has given it no name.
const Undelivered Receipts = 1 << 3

// What a receipt names messages by. A number never changes its meaning: it stands in stored records.
const (
	byID = iota
	byNumber
	byIndex
	byAll
)

// Message returns the Receipt, but for From and To.
func (r ReceiptBody) Message() Message {
	by, name, number := byte(byNumber), r.Session, r.N
	switch {
	case r.Tier == Undelivered:
		by, name = byAll, r.ID
	case r.ID != "":
		by, name, number = byID, r.ID, 0
	case r.Stream != "":
		by, name, number = byIndex, r.Stream, uint64(r.Index)
	}
	b := make([]byte, 0, 2+2*binary.MaxVarintLen64+len(name))
	b = append(b, byte(r.Tier), by)
	b = binary.AppendUvarint(appendCounted(b, name), number)
	if by == byAll {
		b = appendCounted(b, r.Session)
	}
	return Message{Kind: Receipt, Body: b, Media: MediaAgora}
}

// ReceiptBody returns what a Receipt says, also one that was stored as JSON. It fails where m says nothing of the kind.
func (m *Message) ReceiptBody() (ReceiptBody, error) {
	if m.Media == "" {
		return oldReceipt(m)
	}
	d := m.decoder(Receipt)
	tier, by := Receipts(d.byte()), d.byte()
	name, number := d.string(), d.uvarint()
	r := ReceiptBody{Tier: tier}
	if (tier == Undelivered) != (by == byAll) {
		return r, errBody
	}
	switch by {
	case byAll:
		r.ID, r.N, r.Session = name, number, d.string()
		return r, d.end()
	case byID:
		r.ID = name
	case byNumber:
		r.Session, r.N = name, number
	case byIndex:
		r.Stream, r.Index = name, uint32(number)
		d.bad = d.bad || number != uint64(r.Index)
	default:
		d.bad = true
	}
	d.bad = d.bad || tier != Stored && tier != Delivered && tier != Acked
	return r, d.end()
}
