package jslog

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/synadia-io/orbit.go/jetstreamext"
	"github.com/synadia-io/orbit.go/natsext"

	"github.com/agora-relay/agora"
	"github.com/agora-relay/agora/broker/record"
)

// Record is a message as it stands in the log.
type Record struct {
	Subject string
	Seq     uint64
	ID      string // its Nats-Msg-Id
	At      time.Time
	Body    []byte
	Label   string // what its LabelHeader says; empty for none
}

// End returns the position of the message's last part.
func (m *Record) End() uint64 {
	return m.Seq<<agora.SeqShift | uint64(record.Count(m.Body)-1)
}

// Last returns the last message on a subject as the stream's leader knows it: every
// message acknowledged before the call is reckoned with, which no Direct Get promises, since
// a replica that lags may answer that. A subject of ">" is the stream's last message.
func (c *Client) Last(ctx context.Context, stream, subject string) (*Record, error) {
	return c.get(ctx, stream, map[string]any{"last_by_subj": subject})
}

// At returns the message at a sequence as the stream's leader has it.
func (c *Client) At(ctx context.Context, stream string, seq uint64) (*Record, error) {
	return c.get(ctx, stream, map[string]any{"seq": seq})
}

// Next returns the first message of a subject from a sequence on, as the stream's leader has it.
func (c *Client) Next(ctx context.Context, stream, subject string, seq uint64) (*Record, error) {
	return c.get(ctx, stream, map[string]any{"seq": seq, "next_by_subj": subject})
}

// get asks the stream's leader for one message: only it answers these.
func (c *Client) get(ctx context.Context, stream string, req map[string]any) (*Record, error) {
	var v struct {
		Error   *jetstream.APIError `json:"error"`
		Message *struct {
			Subject string    `json:"subject"`
			Seq     uint64    `json:"seq"`
			Data    []byte    `json:"data"`
			Header  []byte    `json:"hdrs"`
			Time    time.Time `json:"time"`
		} `json:"message"`
	}
	if err := c.api(ctx, "STREAM.MSG.GET."+stream, req, &v); err != nil {
		return nil, err
	}
	if e := v.Error; e != nil && e.ErrorCode == jetstream.JSErrCodeMessageNotFound {
		return nil, ErrNone
	} else if e != nil {
		if e.ErrorCode == jetstream.JSErrCodeStreamNotFound {
			c.cfg.Absent(stream)
		}
		return nil, fmt.Errorf("reading %s: %w", stream, e)
	}
	if v.Message == nil {
		return nil, fmt.Errorf("reading %s: empty answer", stream)
	}
	m := v.Message
	return &Record{Subject: m.Subject, Seq: m.Seq, At: m.Time, Body: m.Data, Label: labelOf(m.Header)}, nil
}

// labelOf returns what the LabelHeader of a stored message says, whose headers are given as they stand.
func labelOf(header []byte) string {
	if !bytes.Contains(header, []byte(LabelHeader)) {
		return ""
	}
	h, err := nats.DecodeHeadersMsg(header)
	if err != nil {
		return ""
	}
	return h.Get(LabelHeader)
}

// LastSequences returns the sequence of the last message of each subject that has one at from or later. It waits so
// long for all of it at most.
func (c *Client) LastSequences(ctx context.Context, wait time.Duration, stream string, subjects []string, from uint64) (map[string]uint64, error) {
	ctx, cancel := c.within(ctx, wait)
	defer cancel()
	req, err := json.Marshal(struct {
		Subjects []string `json:"multi_last"`
		From     uint64   `json:"seq,omitempty"`
	}{subjects, from})
	if err != nil {
		return nil, err
	}
	var end *nats.Msg
	answer, err := natsext.RequestMany(ctx, c.nc, "$JS.API.DIRECT.GET."+stream, req, natsext.RequestManySentinel(func(m *nats.Msg) bool {
		if len(m.Data) == 0 && m.Header.Get("Status") != "" { // no record is empty
			end = m
		}
		return end != nil
	}))
	if err != nil {
		return nil, err
	}
	last, before := map[string]uint64{}, uint64(0)
	for m, err := range answer {
		if err != nil {
			return nil, err
		}
		if Number(m.Header, "Nats-Last-Sequence") != before { // each names the one before it in the answer
			return nil, ErrSilent
		}
		before = Number(m.Header, "Nats-Sequence")
		if of := m.Header["Nats-Subject"]; len(of) > 0 {
			last[of[len(of)-1]] = before
		}
	}
	switch {
	case end == nil:
		return nil, ErrSilent
	case end.Header.Get("Status") == noneStatus && len(last) == 0:
		return last, nil
	case end.Header.Get("Status") != endStatus || Number(end.Header, "Nats-Last-Sequence") != before || Number(end.Header, "Nats-Num-Pending") != 0:
		return nil, errors.New("the last messages of " + stream + ": " + end.Header.Get("Description"))
	}
	return last, nil
}

// What ends an answer of many messages.
const (
	endStatus  = "204" // that was all
	noneStatus = "404" // there is none
)

// Query is one read of the log.
type Query struct {
	Stream, Subject string
	Seq             uint64    // from here on
	Since           time.Time // or, when seq is 0, from here on
	Batch           int       // most messages; readBatch
	Bytes           int       // about most bytes; readBytes
}

// Page is the answer to a query: messages of a subject, in order and without gaps, as one replica has them.
type Page struct {
	Records []Record
	Pending int     // how many that replica has after them
	Whole   bool    // there are none after them
	Last    *Record // what the leader had last, right before, where the page reaches that far and it is known
}

// Count returns how many records that replica has from the query's beginning on.
func (p *Page) Count() int64 { return int64(len(p.Records) + p.Pending) }

// Read reads a piece of the log by Direct Get. It may end anywhere: only whole
// says that the answering replica has no more. It fails when nothing was heard.
func (c *Client) Read(ctx context.Context, q Query) (Page, error) {
	ctx, cancel := c.within(ctx, c.cfg.Read)
	defer cancel()
	opts := []jetstreamext.GetBatchOpt{jetstreamext.GetBatchSubject(q.Subject), jetstreamext.GetBatchMaxBytes(cmp.Or(q.Bytes, readBytes))}
	if q.Seq == 0 && !q.Since.IsZero() {
		opts = append(opts, jetstreamext.GetBatchStartTime(q.Since))
	} else {
		opts = append(opts, jetstreamext.GetBatchSeq(max(q.Seq, 1)))
	}
	answer, err := jetstreamext.GetBatch(ctx, c.js, q.Stream, cmp.Or(q.Batch, ReadBatch), opts...)
	if err != nil {
		return Page{}, fmt.Errorf("reading %s: %w", q.Stream, err)
	}
	var p Page
	var last uint64
	for m, err := range answer {
		if errors.Is(err, jetstreamext.ErrNoMessages) && len(p.Records) == 0 {
			return Page{Whole: true}, nil
		}
		if err != nil && len(p.Records) > 0 {
			break
		}
		if err != nil {
			return Page{}, fmt.Errorf("reading %s: %w", q.Stream, err)
		}
		// Each message names the one before it in the answer: a connection lost in the middle shows.
		if before := Number(m.Header, "Nats-Last-Sequence"); before != last {
			break
		}
		last = m.Sequence
		p.Pending = int(Number(m.Header, "Nats-Num-Pending"))
		p.Records = append(p.Records, Record{Subject: m.Subject, Seq: m.Sequence, ID: m.Header.Get(MessageID), At: m.Time, Body: m.Data, Label: m.Header.Get(LabelHeader)})
	}
	if len(p.Records) == 0 {
		return Page{}, fmt.Errorf("reading %s: %w", q.Stream, ErrSilent)
	}
	p.Whole = p.Pending == 0
	return p, nil
}

// Number returns a header of the server's that is a number; 0 when it is none.
func Number(h map[string][]string, name string) uint64 {
	v := h[name]
	if len(v) == 0 {
		return 0
	}
	// A stored header of that name stands before the one that the server adds.
	n, err := strconv.ParseUint(v[len(v)-1], 10, 64)
	if err != nil {
		return 0
	}
	return n
}

// An answer of many records has the server count what stands behind it: it looks at every record of a block for that,
// of whatever subject, half a millisecond and more, before it takes what else the edge has sent. One record costs a
// tenth of it. So what is likely little is read one by one.

const (
	TailRecords   = 4   // records that are read one by one, before the rest is read at once
	tailRecordsOf = 100 // times as many a mailbox keeps at least: see ReadTail
	TailTime      = 500 * time.Millisecond
)

// ReadTail reads the record at q.seq and those after it up to last, which the leader has just had last, one by one, by
// the word of leaders alone. It fails where it is not sure that nothing is missing: where the record at q.seq is gone,
// or is about to be, or it took long, or the mailbox keeps few records.
//
// That record is read after all others. While it is there nothing after it is gone, so nothing was when they were read.
// Another leader may have answered by then that has not applied yet what the first one had: for one of these records to
// be gone at that one, the mailbox must have been filled again within the same half of a second, as last was its end.
func (c *Client) ReadTail(ctx context.Context, q Query, last *Record) (Page, error) {
	if c.cfg.MaxRecords < tailRecordsOf*TailRecords {
		return Page{}, ErrNone
	}
	ctx, cancel := context.WithTimeout(ctx, c.cfg.Tail)
	defer cancel()
	p := Page{Records: make([]Record, 1, TailRecords+1)}
	at := q.Seq
	for size := 0; at < last.Seq && len(p.Records) <= TailRecords && size < q.Bytes; {
		m, err := c.Next(ctx, q.Stream, q.Subject, at+1)
		if err != nil {
			return Page{}, err
		}
		p.Records = append(p.Records, *m)
		at, size = m.Seq, size+len(m.Body)
	}
	first, err := c.At(ctx, q.Stream, q.Seq)
	if err == nil && (first.Subject != q.Subject || c.Forgets(first.At)) {
		err = ErrNone
	}
	if err != nil {
		return Page{}, err
	}
	if p.Records[0] = *first; at >= last.Seq {
		p.Whole, p.Last = true, last
	}
	return p, nil
}
