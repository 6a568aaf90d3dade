package jslog

import (
	"context"
	"time"
)

// An answer of many records has the server count what stands behind it: it looks at every record of a block for that, of
// whatever subject, half a millisecond and more, before it takes what else the edge has sent. One record costs a tenth of it. So
// what is likely little is read one by one.

const (
	TailRecords   = 4   // records that are read one by one, before the rest is read at once
	tailRecordsOf = 100 // times as many a mailbox keeps at least: see ReadTail
	TailTime      = 500 * time.Millisecond
)

// ReadTail reads the record at q.seq and those after it up to last, which the leader has just had last, one by one, by the word of
// leaders alone. It fails where it is not sure that nothing is missing: where the record at q.seq is gone, or is about to be, or it took long, or the mailbox keeps few records.
//
// That record is read after all others. While it is there nothing after it is gone, so nothing was when they were read.
// Another leader may have answered by then that has not applied yet what the first one had: for one
// of these records to be gone at that one, the mailbox must have been filled anew within the same half of a second, as last was its end.
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
