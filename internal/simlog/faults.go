package simlog

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"sync"
)

// What the subjects that matter begin with.
const (
	logPrefix    = "agora.log."
	fencePrefix  = "agora.fence."
	bookPrefix   = "agora.book."
	livePrefix   = "agora.live."
	apiPrefix    = "$JS.API."
	directPrefix = "$JS.API.DIRECT.GET."
)

// Faults are what a cluster of log servers may do to its clients.
type Faults struct {
	mu      sync.Mutex // guards the fields below
	dice    *rand.Rand
	leaders map[string]Leader    // of streams, by kind; one that is well is missing
	losing  int                  // of a hundred live frames, how many are lost
	late    bool                 // live frames come late
	stored  map[string]uint64    // by kind: the last sequence that was republished
	lag     map[string]uint64    // by kind: what its replicas know, up to here
	asked   map[string]*question // reads of replicas that are under way, by where the answer goes
}

// Leader is how a stream's leader is doing.
type Leader int

const (
	Well   Leader = iota
	Dying         // some of what it is sent is lost, some is stored, and nobody is told
	Silent        // it takes nothing, and answers nothing
	Absent        // nobody answers for the stream, and whoever asks is told at once
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

func (f *Faults) init(seed uint64) {
	f.dice = rand.New(rand.NewPCG(seed, 1))
	f.leaders, f.asked = map[string]Leader{}, map[string]*question{}
	f.stored, f.lag = map[string]uint64{}, map[string]uint64{}
}

// SetLeader has the leader of the streams of a kind (agent, space, call, book) be well, or not.
func (f *Faults) SetLeader(kind string, is Leader) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.leaders[kind] = is
}

// Lose has so many of a hundred republished records be lost from now on.
func (f *Faults) Lose(percent int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.losing = percent
}

// Lag has the replicas of a kind's streams know nothing from now on of what is stored, or know all.
func (f *Faults) Lag(kind string, lags bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.lag[kind] = f.stored[kind]; !lags {
		delete(f.lag, kind)
	}
}

// Delay has what is republished come late, or lets it come.
func (l *Log) Delay(late bool) {
	l.Faults.mu.Lock()
	l.late = late
	l.Faults.mu.Unlock()
	if !late {
		for _, d := range l.all() {
			d.release()
		}
	}
}

// Repeat has the last republished records come once more.
func (l *Log) Repeat() {
	for _, d := range l.all() {
		d.repeat()
	}
}

// Mend ends every fault.
func (l *Log) Mend() {
	l.Faults.mu.Lock()
	clear(l.leaders)
	clear(l.lag)
	l.losing = 0
	l.Faults.mu.Unlock()
	l.Delay(false)
}

// kindOf returns which kind of stream a client's frame is for; "" for none.
func kindOf(subject string) string {
	for _, p := range []string{logPrefix, fencePrefix} {
		if rest, ok := strings.CutPrefix(subject, p); ok {
			if words := strings.SplitN(rest, ".", 3); len(words) == 3 {
				return words[1]
			}
		}
	}
	if strings.HasPrefix(subject, bookPrefix) {
		return "book"
	}
	if !strings.HasPrefix(subject, apiPrefix) {
		return ""
	}
	for word := range strings.SplitSeq(subject, ".") {
		if name, ok := strings.CutPrefix(word, "AGORA_"); ok {
			kind, _, _ := strings.Cut(name, "_")
			return strings.ToLower(kind)
		}
	}
	return ""
}

// leaves decides what becomes of a client's frame: what is returned goes to the server.
func (l *Log) leaves(d *line, f *frame) []byte {
	if f.op == "SUB" {
		d.subscribed(f)
	}
	if f.op != "PUB" && f.op != "HPUB" {
		return f.raw
	}
	kind := kindOf(f.subject)
	if kind == "" {
		return f.raw
	}
	l.Faults.mu.Lock()
	defer l.Faults.mu.Unlock()
	api := strings.HasPrefix(f.subject, apiPrefix)
	switch l.leaders[kind] {
	case Silent:
		return nil
	case Absent:
		if f.reply != "" {
			d.pass(noResponders(f.reply, d.sidOf(f.reply)))
		}
		return nil
	case Dying:
		if api || l.dice.IntN(2) == 0 {
			return nil
		}
		return mute(f)
	}
	if most, lags := l.lag[kind]; lags && strings.HasPrefix(f.subject, directPrefix) {
		l.asked[f.reply] = &question{most: most, answers: map[string]*answer{}}
	}
	return f.raw
}

// arrives decides what becomes of a server's frame.
func (l *Log) arrives(d *line, f *frame) {
	if f.op != "MSG" && f.op != "HMSG" {
		d.pass(f.raw)
		return
	}
	if strings.HasPrefix(f.subject, livePrefix) {
		l.arrivesLive(d, f)
		return
	}
	l.Faults.mu.Lock()
	q := l.asked[f.subject]
	l.Faults.mu.Unlock()
	if q == nil {
		d.pass(f.raw)
		return
	}
	l.arrivesLate(d, f, q)
}

func (l *Log) arrivesLive(d *line, f *frame) {
	l.Faults.mu.Lock()
	lost, late := f.header != nil && l.losing > 0 && l.dice.IntN(100) < l.losing, l.late
	if words := strings.Split(f.subject, "."); len(words) > 3 {
		lost = lost || l.leaders[words[3]] == Dying
		seq, _ := strconv.ParseUint(f.value("Nats-Sequence"), 10, 64)
		l.stored[words[3]] = max(l.stored[words[3]], seq)
	}
	l.Faults.mu.Unlock()
	if !lost {
		d.live(f.raw, late)
	}
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
		l.Faults.mu.Lock()
		delete(l.asked, f.subject)
		l.Faults.mu.Unlock()
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
	head := "NATS/1.0 404 No Messages\r\n\r\n"
	if a.last > 0 {
		head = fmt.Sprintf("NATS/1.0 204 EOB\r\nNats-Num-Pending: 0\r\nNats-Last-Sequence: %d\r\n\r\n", a.last)
	}
	d.pass(fmt.Appendf(nil, "HMSG %s %s %d %d\r\n%s\r\n", f.subject, f.sid, len(head), len(head), head))
}

// pending returns a message of an answer that says how many come after it. The number keeps its width, as the sizes of the frame count it.
func pending(raw []byte, n int) []byte {
	const name = "\r\nNats-Num-Pending:"
	i := bytes.Index(raw, []byte(name))
	if i < 0 {
		return raw
	}
	from := i + len(name)
	end := from + bytes.Index(raw[from:], newline)
	return append(raw[:from], append(fmt.Appendf(nil, "%*d", end-from, n), raw[end:]...)...)
}

// mute returns a publish without the place where its answer is wanted: it is stored, and nobody is told.
func mute(f *frame) []byte {
	end := bytes.Index(f.raw, newline)
	first := bytes.Replace(f.raw[:end], []byte(" "+f.reply+" "), []byte(" "), 1)
	return append(append([]byte(nil), first...), f.raw[end:]...)
}

// noResponders is what a client is told whose request nobody takes.
func noResponders(reply, sid string) []byte {
	head := "NATS/1.0 503\r\n\r\n"
	return fmt.Appendf(nil, "HMSG %s %s %d %d\r\n%s\r\n", reply, sid, len(head), len(head), head)
}

// matches reports whether a subject is one of those that a subscription is for.
func matches(subscription, subject string) bool {
	pattern, words := strings.Split(subscription, "."), strings.Split(subject, ".")
	for k, p := range pattern {
		if p == ">" {
			return len(words) > k
		}
		if k >= len(words) || p != "*" && p != words[k] {
			return false
		}
	}
	return len(words) == len(pattern)
}
