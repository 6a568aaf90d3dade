package simlog

import (
	"bytes"
	"fmt"
	"strconv"

	"github.com/nats-io/nats-server/v2/server"
)

// question is a read of a replica that is under way.
type question struct {
	most    uint64             // what the replica knows
	answers map[string]*answer // under way, by the subscription that gets them: a client may have two for one subject
}

// answer is what a replica that lags has to say.
type answer struct {
	known  [][]byte // messages
	last   uint64   // sequence of the last one
	beyond bool     // there is more that it does not know
}

// span is what a replica knows of a stream.
type span struct{ first, last uint64 }

// ends returns the first and last sequences of a kind's streams.
func (l *Log) ends(kind string) map[string]span {
	all := map[string]span{}
	info, err := l.server().Jsz(&server.JSzOptions{Streams: true})
	if err != nil {
		return all // it is going down
	}
	for _, account := range info.AccountDetails {
		for _, s := range account.Streams {
			if kindOfStream(s.Name) == kind {
				all[s.Name] = span{s.State.FirstSeq, s.State.LastSeq}
			}
		}
	}
	return all
}

// askReplica notes a read that a replica answers, where it lags. The lock of Faults is held.
func (l *Log) askReplica(f *frame, kind string) []byte {
	if !l.lagging[kind] {
		return f.raw
	}
	most := l.lag[streamOf(f.subject)] // 0: the stream was made since, and it knows nothing
	l.asked[f.reply] = &question{most: most.last, answers: map[string]*answer{}}
	return f.raw
}

// arrivesLate keeps what the server answers until that was all, and passes on what a replica that lags would answer.
func (l *Log) arrivesLate(d *line, f *frame, q *question) {
	a := q.answers[f.sid]
	if a == nil {
		a = new(answer)
		q.answers[f.sid] = a
	}
	if seq, _ := strconv.ParseUint(f.value("Nats-Sequence"), 10, 64); seq > 0 {
		if a.beyond = a.beyond || seq > q.most; seq <= q.most {
			a.last = seq
			a.known = append(a.known, append([]byte(nil), f.raw...))
		}
		return
	}
	if delete(q.answers, f.sid); len(q.answers) == 0 {
		l.Faults.set(func() { delete(l.asked, f.subject) })
	}
	a.pass(d, f)
}

// pass gives the client the answer; f is how the server has ended its own.
func (a *answer) pass(d *line, f *frame) {
	for k, raw := range a.known {
		if a.beyond {
			raw = pending(raw, len(a.known)-1-k)
		}
		d.pass(raw)
	}
	if !a.beyond {
		d.pass(f.raw)
		return
	}
	end := reply{header: "NATS/1.0 404 No Messages\r\n\r\n"}
	if a.last > 0 {
		end.header = fmt.Sprintf("NATS/1.0 204 EOB\r\nNats-Num-Pending: 0\r\nNats-Last-Sequence: %d\r\n\r\n", a.last)
	}
	d.pass(end.frame(f.subject, f.sid))
}

// pending returns a message of an answer that says how many come after it. The number keeps its width, as the sizes of the frame count it.
func pending(raw []byte, n int) []byte {
	const name = "\r\nNats-Num-Pending:"
	i := bytes.LastIndex(raw[:headEnd(raw)], []byte(name))
	if i < 0 {
		return raw
	}
	from := i + len(name)
	end := from + bytes.Index(raw[from:], newline)
	return append(raw[:from], append(fmt.Appendf(nil, "%*d", end-from, n), raw[end:]...)...)
}

// headEnd is where the header of a frame ends.
func headEnd(raw []byte) int {
	if i := bytes.Index(raw, []byte("\r\n\r\n")); i >= 0 {
		return i + 4
	}
	return len(raw)
}
