package jslog

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/agora-relay/agora"
	"github.com/agora-relay/agora/broker/record"
)

// LabelHeader has what is said of a record beside it: a token. Readers that don't know it do without.
const LabelHeader = "Agora-Label"

// Headers that the server reads.
const (
	MessageID       = "Nats-Msg-Id"
	ExpectedLast    = "Nats-Expected-Last-Subject-Sequence" // refuse the record unless its fence is where this says
	ExpectedSubject = ExpectedLast + "-Subject"             // which subject the fence is
)

// RetryPause is how long to wait before another try where nobody answered.
const RetryPause = 100 * time.Millisecond

// Ack is what the server says of a publish.
type Ack struct {
	Seq       uint64
	Duplicate bool // it was there before, at seq, and is not handed on again
	Absent    bool // nobody took it: the stream has no leader now
	Err       *jetstream.APIError
}

// Refused reports whether the log would not take the record because it is full. An earlier copy of the same
// record may yet be stored.
func (a Ack) Refused() bool {
	if a.Err == nil {
		return false
	}
	switch a.Err.ErrorCode {
	case CodeStoreFailed:
		return strings.Contains(a.Err.Description, "maximum")
	case CodeResources, CodeMemory, CodeStorage:
		return true
	}
	return false
}

// Fenced reports whether the fence is not where the record expects it, or can't be told now.
func (a Ack) Fenced() bool {
	return a.Err != nil && (a.Err.ErrorCode == CodeWrongLast || a.Err.ErrorCode == CodeWrongLastOnWay)
}

// ParseAck reads the server's answer. The usual one is read without a JSON decoder:
// every record has one.
func ParseAck(m *nats.Msg) (a Ack, err error) {
	if len(m.Data) == 0 && m.Header.Get("Status") == "503" {
		return Ack{Absent: true}, nil
	}
	if _, rest, ok := bytes.Cut(m.Data, []byte(`"seq":`)); ok && bytes.HasPrefix(m.Data, []byte(`{"stream":`)) {
		rest = bytes.TrimLeft(rest, " ")
		seq, n := uint64(0), 0
		for ; n < len(rest) && '0' <= rest[n] && rest[n] <= '9' && n < 19; n++ {
			seq = seq*10 + uint64(rest[n]-'0')
		}
		if seq > 0 {
			return Ack{Seq: seq, Duplicate: bytes.Contains(rest[n:], []byte(`"duplicate":`))}, nil
		}
	}
	var v struct {
		Seq       uint64              `json:"seq"`
		Duplicate bool                `json:"duplicate"`
		Error     *jetstream.APIError `json:"error"`
	}
	if err := json.Unmarshal(m.Data, &v); err != nil {
		return Ack{}, fmt.Errorf("answer to a publish: %w", err)
	}
	if v.Error == nil && v.Seq == 0 {
		return Ack{}, errors.New("answer to a publish: neither error nor sequence")
	}
	return Ack{Seq: v.Seq, Duplicate: v.Duplicate, Err: v.Error}, nil
}

// Publish sends m once and waits for the answer.
func (c *Client) Publish(ctx context.Context, m *nats.Msg, wait time.Duration) (Ack, error) {
	ctx, cancel := c.within(ctx, wait)
	defer cancel()
	resp, err := c.nc.RequestMsgWithContext(ctx, m)
	if errors.Is(err, nats.ErrNoResponders) {
		return Ack{Absent: true}, nil
	}
	if err != nil {
		return Ack{}, err
	}
	return ParseAck(resp)
}

// Laneless returns what is to be published for a message outside any lane, under its key.
func (c *Client) Laneless(p Location, key string, m *agora.Message) (*nats.Msg, error) {
	o := record.Origin{Session: m.Session, ValidAt: c.cfg.Clock.Now().UnixMilli(), From: m.From}
	if err := record.CheckMeta(&m.Meta); err != nil {
		return nil, err
	}
	body := record.Of(o, *m)
	if most := c.MaxRecord(); len(body) > most {
		return nil, TooLarge(most)
	}
	msg := nats.NewMsg(p.Log())
	msg.Header[MessageID] = []string{"key/" + p.Log() + "/" + key}
	msg.Data = body
	return msg, nil
}

// Headroom is how much of max_payload is kept for headers, and for what RePublish adds to them.
const Headroom = 8 << 10

// MaxRecord returns how large a record may be: what the servers take less room for headers.
func (c *Client) MaxRecord() int { return int(c.nc.MaxPayload()) - Headroom }
