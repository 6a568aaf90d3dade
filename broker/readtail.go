package broker

import (
	"context"
	"time"
)

// An answer of many records has the server count what stands behind it: it looks at every record of a block for that, of
// whatever subject, half a millisecond and more, before it takes what else the edge has sent. One record costs a tenth of it. So
// what is likely little is read one by one.

const (
	tailRecords   = 4   // records that are read one by one, before the rest is read at once
	tailRecordsOf = 100 // times as many a mailbox keeps at least: see readFew
	tailTime      = 500 * time.Millisecond
)

// readTail reads the record at q.seq and those after it up to last, which the leader has just had last, one by one, by the word of
// leaders alone. It fails where it is not sure that nothing is missing: where the record at q.seq is gone, or is about to be, or it took long.
//
// That record is read after all others. While it is there nothing after it is gone, so nothing was when they were read.
// Another leader may have answered by then that has not applied yet what the first one had: for one
// of these records to be gone at that one, the mailbox must have been filled anew within the same half of a second, as last was its end.
func (c *logClient) readTail(ctx context.Context, q query, last *storedRecord) (page, error) {
	ctx, cancel := context.WithTimeout(ctx, c.cfg.Tail)
	defer cancel()
	p := page{msgs: make([]storedRecord, 1, tailRecords+1)}
	at := q.seq
	for size := 0; at < last.seq && len(p.msgs) <= tailRecords && size < q.bytes; {
		m, err := c.nextOf(ctx, q.stream, q.subject, at+1)
		if err != nil {
			return page{}, err
		}
		p.msgs = append(p.msgs, *m)
		at, size = m.seq, size+len(m.body)
	}
	first, err := c.at(ctx, q.stream, q.seq)
	if err == nil && (first.subject != q.subject || c.forgets(first.at)) {
		err = errNone
	}
	if err != nil {
		return page{}, err
	}
	if p.msgs[0] = *first; at >= last.seq {
		p.whole, p.last = true, last
	}
	return p, nil
}
