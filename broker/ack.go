package broker

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
func (c *logClient) publishWait(ctx context.Context, m *nats.Msg, wait time.Duration) (ack, error) {
	ctx, cancel := c.within(ctx, wait)
	defer cancel()
	resp, err := c.nc.RequestMsgWithContext(ctx, m)
	if errors.Is(err, nats.ErrNoResponders) {
		return ack{absent: true}, nil
	}
	if err != nil {
		return ack{}, err
	}
	return parseAck(resp)
}
