package agora

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"slices"
)

// Media types that have a meaning here.
const (
	MediaText  = "text/plain"            // the body is text, in UTF-8
	MediaAgora = "application/vnd.agora" // the body is the cluster's own: see [ReceiptBody] and [RosterBody]
)

// errBody means a body that is not what its message's kind says.
var errBody = errors.New("the body is not what its kind says")

func appendCounted(b []byte, s string) []byte {
	b = binary.AppendUvarint(b, uint64(len(s)))
	return append(b, s...)
}

// decoder reads a body of the cluster's own. Its strings share one copy of the body.
type decoder struct {
	rest string
	bad  bool
}

func (m *Message) decoder(want Kind) decoder {
	return decoder{rest: string(m.Body), bad: m.Kind != want || m.Media != MediaAgora}
}

func (d *decoder) byte() byte {
	if d.rest == "" {
		d.bad = true
		return 0
	}
	c := d.rest[0]
	d.rest = d.rest[1:]
	return c
}

func (d *decoder) uvarint() (v uint64) {
	for shift := 0; ; shift += 7 {
		c := d.byte()
		if shift == 63 && c > 1 {
			d.bad = true
		}
		if d.bad {
			return 0
		}
		v |= uint64(c&0x7f) << shift
		if c < 0x80 {
			return v
		}
	}
}

func (d *decoder) string() string {
	n := d.uvarint()
	if n > uint64(len(d.rest)) {
		d.bad = true
	}
	if d.bad {
		return ""
	}
	s := d.rest[:n]
	d.rest = d.rest[n:]
	return s
}

// end returns an error where the body was not all that was read, and nothing else.
func (d *decoder) end() error {
	if d.bad || d.rest != "" {
		return errBody
	}
	return nil
}

// Before bodies had a media type, those of the cluster were members of the frames of one door: a JSON object without
// its braces.

func oldBody(m *Message, want Kind, into any) error {
	if m.Kind != want {
		return errBody
	}
	return json.Unmarshal(slices.Concat([]byte("{"), m.Body, []byte("}")), into)
}

func oldReceipt(m *Message) (ReceiptBody, error) {
	var v struct {
		Status    string `json:"status"`
		RequestID string `json:"request_id"`
		N         uint64 `json:"n"`
		StreamID  string `json:"stream_id"`
		Index     uint32 `json:"index"`
	}
	if err := oldBody(m, Receipt, &v); err != nil {
		return ReceiptBody{}, err
	}
	r := ReceiptBody{ID: v.RequestID, N: v.N, Stream: v.StreamID, Index: v.Index}
	if v.N > 0 {
		r.Session = m.Stream
	}
	switch v.Status {
	case "delivered":
		r.Tier = Delivered
	case "acked":
		r.Tier = Acked
	default:
		return ReceiptBody{}, errBody
	}
	return r, nil
}

func oldRoster(m *Message) (RosterBody, error) {
	var v struct {
		Members      []AgentID `json:"members"`
		Joined, Left AgentID
	}
	if err := oldBody(m, Roster, &v); err != nil {
		return RosterBody{}, err
	}
	return RosterBody{Joined: v.Joined, Left: v.Left, Members: v.Members}, nil
}
