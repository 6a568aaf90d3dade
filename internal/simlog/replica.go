package simlog

import (
	"encoding/json"
	"fmt"
	"slices"
	"time"
)

// stored is a record that a replica has.
type stored struct {
	subject string
	seq     uint64
	at      time.Time
	header  []byte // as the server shows it to who reads many, up to what it says of the others
	body    []byte
}

// question is what a replica is asked for: records of a subject in order, or the last ones of some.
type question struct {
	Seq     uint64    `json:"seq"`
	Since   time.Time `json:"start_time"`
	Subject string    `json:"next_by_subj"`
	Batch   int       `json:"batch"`
	Bytes   int       `json:"max_bytes"`
	LastOf  []string  `json:"multi_last"`
}

// What a replica says at the end of an answer, or instead of one.
const (
	thatWasAll = "NATS/1.0 204 EOB\r\nNats-Num-Pending: %d\r\nNats-Last-Sequence: %d\r\n\r\n"
	noneThere  = "NATS/1.0 404 No Messages\r\n\r\n"
	tooMany    = "NATS/1.0 413 Too Many Results\r\n\r\n"
	mostLasts  = 1024
)

// askReplica answers a read that a replica answers, where it lags: by what it had when it began to lag. What the leader
// has dropped since is still there, as a replica drops it no sooner than it stores what took its place. The lock of
// Faults is held.
func (l *Log) askReplica(d *line, f *frame, kind string) []byte {
	var q question
	if !l.lagging[kind] || json.Unmarshal(f.body, &q) != nil {
		return f.raw
	}
	d.answer(f.reply, q.answer(l.lag[streamOf(f.subject)])...) // nothing is there, where the stream was made since
	return nil
}

// answer returns what a replica says that has these records.
func (q *question) answer(has []stored) (all []reply) {
	found := q.find(has)
	switch {
	case len(found) == 0:
		return []reply{{header: noneThere}}
	case len(q.LastOf) > 0 && len(found) > mostLasts:
		return []reply{{header: tooMany}}
	}
	before, left := uint64(0), len(found)
	for k, bytes := 0, 0; k < len(found) && (q.Batch == 0 || k < q.Batch) && (q.Bytes == 0 || bytes < q.Bytes); k++ {
		m := &found[k]
		bytes += len(m.subject) + len(m.header) + len(m.body)
		left--
		all = append(all, reply{fmt.Sprintf("%s\r\nNats-Num-Pending: %d\r\nNats-Last-Sequence: %d\r\n\r\n", m.header, left, before), string(m.body)})
		before = m.seq
	}
	return append(all, reply{header: fmt.Sprintf(thatWasAll, left, before)})
}

// find returns what a question is about, in order.
func (q *question) find(has []stored) []stored {
	var found []stored
	last := map[string]int{}
	for k := range has {
		m := &has[k]
		switch {
		case m.seq < q.Seq || m.at.Before(q.Since):
		case len(q.LastOf) == 0 && matches(q.Subject, m.subject):
			found = append(found, *m)
		case slices.ContainsFunc(q.LastOf, func(s string) bool { return matches(s, m.subject) }):
			last[m.subject] = k
		}
	}
	for k := range has {
		if at, is := last[has[k].subject]; is && at == k {
			found = append(found, has[k])
		}
	}
	return found
}
