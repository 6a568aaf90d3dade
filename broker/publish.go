package broker

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/agora-relay/agora"
	"github.com/agora-relay/agora/broker/ledger"
	"github.com/agora-relay/agora/broker/record"
	"github.com/agora-relay/agora/internal/guard"
)

// ack is what the server says of a publish.
type ack struct {
	seq       uint64
	duplicate bool // it was there before, at seq, and is not handed on again
	absent    bool // nobody took it: the stream has no leader now
	err       *jetstream.APIError
}

// refused reports whether the log would not take the record because it is full. An earlier copy of the same
// record may yet be stored.
func (a ack) refused() bool {
	if a.err == nil {
		return false
	}
	switch a.err.ErrorCode {
	case codeStoreFailed:
		return strings.Contains(a.err.Description, "maximum")
	case codeResources, codeMemory, codeStorage:
		return true
	}
	return false
}

// fenced reports whether the fence is not where the record expects it, or can't be told now.
func (a ack) fenced() bool {
	return a.err != nil && (a.err.ErrorCode == codeWrongLast || a.err.ErrorCode == codeWrongLastOnWay)
}

// parseAck reads the server's answer. The usual one is read without a JSON decoder:
// every record has one.
func parseAck(m *nats.Msg) (a ack, err error) {
	if len(m.Data) == 0 && m.Header.Get("Status") == "503" {
		return ack{absent: true}, nil
	}
	if bytes.HasPrefix(m.Data, []byte(`{"stream":`)) {
		if _, rest, ok := bytes.Cut(m.Data, []byte(`"seq":`)); ok {
			if seq, rest, ok := digits(rest); ok && seq > 0 {
				return ack{seq: seq, duplicate: bytes.Contains(rest, []byte(`"duplicate":`))}, nil
			}
		}
	}
	var v struct {
		Seq       uint64              `json:"seq"`
		Duplicate bool                `json:"duplicate"`
		Error     *jetstream.APIError `json:"error"`
	}
	if err := json.Unmarshal(m.Data, &v); err != nil {
		return ack{}, fmt.Errorf("answer to a publish: %w", err)
	}
	if v.Error == nil && v.Seq == 0 {
		return ack{}, errors.New("answer to a publish: neither error nor sequence")
	}
	return ack{seq: v.Seq, duplicate: v.Duplicate, err: v.Error}, nil
}

// digits reads a number at the start of b, after spaces.
func digits(b []byte) (v uint64, rest []byte, ok bool) {
	b = bytes.TrimLeft(b, " ")
	i := 0
	for ; i < len(b) && '0' <= b[i] && b[i] <= '9' && i < 19; i++ {
		v = v*10 + uint64(b[i]-'0')
	}
	return v, b[i:], i > 0
}

// publishWait sends m once and waits for the answer.
func (b *Broker) publishWait(ctx context.Context, m *nats.Msg, wait time.Duration) (ack, error) {
	ctx, cancel := b.waiting(ctx, wait)
	defer cancel()
	resp, err := b.nc.RequestMsgWithContext(ctx, m)
	if errors.Is(err, nats.ErrNoResponders) {
		return ack{absent: true}, nil
	}
	if err != nil {
		return ack{}, err
	}
	return parseAck(resp)
}

// Publish stores m outside any lane, for what the cluster itself says: rosters, agent
// status. key is its idempotency key for the whole cluster: a second call
// with it within the duplicate window stores nothing, on whatever edge. It retries until ctx is over,
// but not so long that a copy could be stored behind the window, and not when the log is full. What may have been stored and
// be gone again when it is sent anew is marked Again.
func (b *Broker) Publish(ctx context.Context, key string, m agora.Message) (seq uint64, err error) {
	p := locate(m.To, b.cfg.Shards)
	ctx, cancel := context.WithTimeout(ctx, b.cfg.Duplicates*3/4)
	defer cancel()
	for tried := false; ; tried = true {
		var a ack
		if tried && !m.Again { // a server that has started since knows the keys alone that still stand in its log
			var stands bool
			stands, err = b.nothingEvicted(ctx, &p, 0, time.Time{})
			m.Again = err == nil && !stands
		}
		if err == nil {
			msg, bad := b.lanelessRecord(p, key, &m)
			if bad != nil {
				return 0, bad
			}
			a, err = b.publishWait(ctx, msg, b.cfg.Retry)
		}
		switch {
		case err != nil && ctx.Err() != nil:
			return 0, b.unavailable(err)
		case err == nil && a.refused():
			return 0, full()
		case err == nil && a.err == nil && !a.absent:
			b.storedOne(p, a)
			return a.seq << agora.SeqShift, nil
		}
		if err = nil; a.absent {
			b.watchers.nobody(p.stream)
		}
		b.count.retries.Add(1)
		select {
		case <-time.After(retryPause):
		case <-ctx.Done():
			return 0, b.unavailable(ctx.Err())
		case <-b.ctx.Done():
			return 0, b.unavailable(errClosed)
		}
	}
}

// retryPause is how long to wait before another try where nobody answered.
const retryPause = 100 * time.Millisecond

// lanelessRecord returns the record of a message outside any lane.
func (b *Broker) lanelessRecord(p location, key string, m *agora.Message) (*nats.Msg, error) {
	o := record.Origin{Session: m.Session, ValidAt: b.Now().UnixMilli(), From: m.From}
	if err := record.CheckMeta(&m.Meta); err != nil {
		return nil, err
	}
	body := record.Of(o, *m)
	if len(body) > b.MaxRecord() {
		return nil, tooLarge(b.MaxRecord())
	}
	msg := nats.NewMsg(p.log())
	msg.Header[messageID] = []string{"key/" + p.log() + "/" + key}
	msg.Data = body
	return msg, nil
}

func (b *Broker) storedOne(p location, a ack) {
	if a.duplicate {
		b.count.duplicates.Add(1)
		b.nudge(p, a.seq)
		return
	}
	b.count.records.Add(1)
	b.count.parts.Add(1)
	b.tails.note(p, a.seq, time.Now())
}

// nudge tells those who listen at p that a record is stored which may never be handed on to them:
// the server does that once, and not again for a duplicate.
func (b *Broker) nudge(p location, seq uint64) {
	if !guard.Nudges {
		return
	}
	m := nats.NewMsg(p.live)
	m.Header[nudgeHeader] = []string{strconv.FormatUint(seq, 10)}
	// A nudge that is lost is made good by the next audit.
	_ = b.nc.PublishMsg(m)
}

const nudgeHeader = "Agora-Nudge"

func full() *agora.Error {
	return &agora.Error{Code: agora.Unavailable, Message: "the message log is full", RetryAfter: ledger.RetryAfter}
}

func tooLarge(limit int) *agora.Error {
	return agora.Errorf(agora.MessageTooLarge, "the message does not fit the %d bytes that the log takes", limit)
}
