package broker

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/synadia-io/orbit.go/jetstreamext"

	"github.com/agora-relay/agora"
	"github.com/agora-relay/agora/broker/record"
)

// errNone means that the log has no such message.
var errNone = errors.New("no such message in the log")

// errSilent means that the log did not answer in time.
var errSilent = errors.New("the log did not answer in time")

const (
	readTime   = 2 * time.Second // for one answer of the log
	readBatch  = 256             // messages in one read
	readBytes  = 1 << 20         // about as much in one read
	auditBatch = 128             // subjects in one read of last messages, for which the server takes nothing else that the edge sends
)

// logClient asks JetStream. Its methods may be called at the same time.
type logClient struct {
	nc     *nats.Conn
	js     jetstream.JetStream
	within func(ctx context.Context, d time.Duration) (context.Context, context.CancelFunc)
	cfg    clientConfig
}

// clientConfig sets up a client.
type clientConfig struct {
	Read       time.Duration       // for one answer of the log
	Tail       time.Duration       // for reading a few records one by one
	Retry      time.Duration       // for one answer to a fence
	MaxAge     time.Duration       // of a record
	MaxRecords int64               // per mailbox or space
	Clock      *clock              // set by what the servers say
	Absent     func(stream string) // told that nobody answers for a stream; must not block
}

// newLogClient returns a client on a connection. within returns a context for one question: it is over after a time, and when the connection is lost.
func newLogClient(nc *nats.Conn, js jetstream.JetStream, within func(context.Context, time.Duration) (context.Context, context.CancelFunc), cfg clientConfig) *logClient {
	return &logClient{nc: nc, js: js, within: within, cfg: cfg}
}

// storedRecord is a message as it stands in the log.
type storedRecord struct {
	subject string
	seq     uint64
	id      string // its Nats-Msg-Id
	at      time.Time
	body    []byte
}

// end returns the position of the message's last part.
func (m *storedRecord) end() uint64 {
	return m.seq<<agora.SeqShift | uint64(record.Count(m.body)-1)
}

// lastOf returns the last message on a subject as the stream's leader knows it: every
// message acknowledged before the call is reckoned with, which no Direct Get promises, since
// a replica that lags may answer that. A subject of ">" is the stream's last message.
func (c *logClient) lastOf(ctx context.Context, stream, subject string) (*storedRecord, error) {
	return c.get(ctx, stream, map[string]any{"last_by_subj": subject})
}

// at returns the message at a sequence as the stream's leader has it.
func (c *logClient) at(ctx context.Context, stream string, seq uint64) (*storedRecord, error) {
	return c.get(ctx, stream, map[string]any{"seq": seq})
}

// nextOf returns the first message of a subject from a sequence on, as the stream's leader has it.
func (c *logClient) nextOf(ctx context.Context, stream, subject string, seq uint64) (*storedRecord, error) {
	return c.get(ctx, stream, map[string]any{"seq": seq, "next_by_subj": subject})
}

// get asks the stream's leader for one message: only it answers these.
func (c *logClient) get(ctx context.Context, stream string, req map[string]any) (*storedRecord, error) {
	var v struct {
		Error   *jetstream.APIError `json:"error"`
		Message *struct {
			Subject string    `json:"subject"`
			Seq     uint64    `json:"seq"`
			Data    []byte    `json:"data"`
			Time    time.Time `json:"time"`
		} `json:"message"`
	}
	if err := c.api(ctx, "STREAM.MSG.GET."+stream, req, &v); err != nil {
		return nil, err
	}
	if e := v.Error; e != nil && e.ErrorCode == jetstream.JSErrCodeMessageNotFound {
		return nil, errNone
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
	return &storedRecord{subject: m.Subject, seq: m.Seq, at: m.Time, body: m.Data}, nil
}

// query is one read of the log.
type query struct {
	stream, subject string
	seq             uint64    // from here on
	since           time.Time // or, when seq is 0, from here on
	batch           int       // most messages; readBatch
	bytes           int       // about most bytes; readBytes
}

// page is the answer to a query: messages of a subject, in order and without gaps, as one replica has them.
type page struct {
	msgs    []storedRecord
	pending int           // how many that replica has after them
	whole   bool          // there are none after them
	last    *storedRecord // what the leader had last, right before, where the page reaches that far and it is known
}

// readLog reads a piece of the log by Direct Get. It may end anywhere: only whole
// says that the answering replica has no more. It fails when nothing was heard.
func (c *logClient) readLog(ctx context.Context, q query) (page, error) {
	ctx, cancel := c.within(ctx, c.cfg.Read)
	defer cancel()
	opts := []jetstreamext.GetBatchOpt{jetstreamext.GetBatchSubject(q.subject), jetstreamext.GetBatchMaxBytes(orElse(q.bytes, readBytes))}
	if q.seq == 0 && !q.since.IsZero() {
		opts = append(opts, jetstreamext.GetBatchStartTime(q.since))
	} else {
		opts = append(opts, jetstreamext.GetBatchSeq(max(q.seq, 1)))
	}
	answer, err := jetstreamext.GetBatch(ctx, c.js, q.stream, orElse(q.batch, readBatch), opts...)
	if err != nil {
		return page{}, fmt.Errorf("reading %s: %w", q.stream, err)
	}
	var p page
	var last uint64
	for m, err := range answer {
		if errors.Is(err, jetstreamext.ErrNoMessages) && len(p.msgs) == 0 {
			return page{whole: true}, nil
		}
		if err != nil && len(p.msgs) > 0 {
			break
		}
		if err != nil {
			return page{}, fmt.Errorf("reading %s: %w", q.stream, err)
		}
		// Each message names the one before it in the answer: a connection lost in the middle shows.
		if before := number(m.Header, "Nats-Last-Sequence"); before != last {
			break
		}
		last = m.Sequence
		p.pending = int(number(m.Header, "Nats-Num-Pending"))
		p.msgs = append(p.msgs, storedRecord{subject: m.Subject, seq: m.Sequence, id: m.Header.Get(messageID), at: m.Time, body: m.Data})
	}
	if len(p.msgs) == 0 {
		return page{}, fmt.Errorf("reading %s: %w", q.stream, errSilent)
	}
	p.whole = p.pending == 0
	return p, nil
}

// number returns a header of the server's that is a number; 0 when it is none.
func number(h map[string][]string, name string) uint64 {
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

func orElse(v, other int) int {
	if v > 0 {
		return v
	}
	return other
}
