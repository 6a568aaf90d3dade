//go:build chaos

package reliability

import (
	"fmt"
	"sync"
	"time"
)

// writer says things to addresses, and says them again until they are receipted.
type writer struct {
	party
	to   []string
	form form

	mu        sync.Mutex     // guards the fields below
	receipted map[string]int // the highest number, by address
	over      map[string]overStream
	busy      bool // something has no receipt yet
	given     int  // streams that were given up
}

// overStream is a stream that its writer knows to be over.
type overStream struct {
	to, how string // "end" or "abort"
	lost    bool   // its session was
}

// form is how a writer tells its frames apart. The writer's lock is held.
type form interface {
	bound(w *writer, new bool)
	hear(w *writer, f heard)
	say(w *writer, to string, now time.Time) (busy bool) // says what there is to say to an address; new things unless all is to be quiet
}

func newWriter(b *books, id string, to []string, f form) {
	w := &writer{party: party{books: b, id: id}, to: to, form: f, receipted: map[string]int{}, over: map[string]overStream{}, busy: true}
	w.role = w
	b.writers = append(b.writers, w)
}

func (w *writer) hello() string { return "" }

func (w *writer) bound(_ heard, new bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.form.bound(w, new)
}

func (w *writer) hear(f heard) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.form.hear(w, f)
}

func (w *writer) say(now time.Time) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.busy = false
	for _, to := range w.to {
		if w.form.say(w, to, now) {
			w.busy = true
		}
	}
}

const again = 300 * time.Millisecond // before what was refused is said again

// byID says one thing at a time to each address, under an id.
type byID struct {
	rooms bool
	lanes map[string]*idLane
}

type idLane struct {
	n    int // under way; 0 for none
	due  time.Time
	sent bool // on this connection
}

func (s *byID) bound(w *writer, new bool) {
	if s.lanes == nil {
		s.lanes = map[string]*idLane{}
	}
	for _, to := range w.to {
		if s.lanes[to] == nil {
			s.lanes[to] = &idLane{}
		}
		s.lanes[to].sent = false
		if s.rooms {
			w.tell(`{"type":"space.join","space":%q,"id":"j"}`, to)
		}
	}
}

func (s *byID) say(w *writer, to string, now time.Time) bool {
	l := s.lanes[to]
	if l.n == 0 && now.After(l.due) && !w.books.quiet.Load() {
		*l = idLane{n: w.receipted[to] + 1}
	}
	if l.n == 0 || l.sent || now.Before(l.due) {
		return l.n != 0
	}
	l.sent = true
	frame := `{"type":"send","to":%q,"id":"%[1]s-%d","payload":{"n":%[2]d,"e":%d,"w":%q}}`
	if s.rooms {
		frame = `{"type":"space.publish","space":%q,"id":"%[1]s-%d","receipts":["stored"],"data":{"n":%[2]d,"e":%d,"w":%q}}`
	}
	w.tell(frame, to, l.n, w.sessions, w.id)
	return true
}

func (s *byID) hear(w *writer, f heard) {
	for to, l := range s.lanes {
		switch {
		case f.RequestID != fmt.Sprintf("%s-%d", to, l.n):
		case f.Type == "receipt" && f.Status == "stored":
			w.receipted[to], l.n, l.due = l.n, 0, time.Now().Add(w.about(20*time.Millisecond))
		case f.Type == "error":
			l.sent, l.due = false, time.Now().Add(again)
			if s.rooms {
				w.tell(`{"type":"space.join","space":%q,"id":"j"}`, to)
			}
		}
	}
}

// byNumber numbers what it says, and has a window of it under way to each address.
type byNumber struct{ lanes map[string]*numberLane }

type numberLane struct {
	base int // what the session's numbers are counted from
	next int // to be said next
	made int // the highest that was ever said
	due  time.Time
}

const window = 40

func (s *byNumber) bound(w *writer, new bool) {
	if s.lanes == nil {
		s.lanes = map[string]*numberLane{}
	}
	for _, to := range w.to {
		if s.lanes[to] == nil {
			s.lanes[to] = &numberLane{}
		}
		l := s.lanes[to]
		if new {
			l.base = w.receipted[to]
		}
		l.next, l.due = w.receipted[to]+1, time.Time{}
	}
}

func (s *byNumber) say(w *writer, to string, now time.Time) bool {
	l := s.lanes[to]
	for k := 0; k < 5 && now.After(l.due) && l.next <= w.receipted[to]+window && (l.next <= l.made || !w.books.quiet.Load()); k++ {
		w.tell(`{"type":"send","to":%q,"n":%d,"payload":{"n":%d,"e":%d,"w":%q}}`, to, l.next-l.base, l.next, w.sessions, w.id)
		l.made, l.next = max(l.made, l.next), l.next+1
		if k == 4 {
			l.due = now.Add(20 * time.Millisecond)
		}
	}
	return w.receipted[to] < l.made
}

func (s *byNumber) hear(w *writer, f heard) {
	l := s.lanes[f.To]
	switch {
	case l == nil || f.N == 0:
	case f.Type == "receipt" && f.Status == "stored":
		w.receipted[f.To] = max(w.receipted[f.To], l.base+int(f.N))
	case f.Type == "error": // it comes again, and all behind it
		l.next, l.due = min(l.next, l.base+int(f.N)), time.Now().Add(again)
	}
}

// byIndex sends one stream after the other to each address, by index.
type byIndex struct{ lanes map[string]*indexLane }

type indexLane struct {
	made  int // streams so far
	name  string
	parts int // index of the end
	acked int // the highest index that is receipted; -1 for none
	next  int // to be said next
	due   time.Time
	last  time.Time // when the end was said
}

func (s *byIndex) bound(w *writer, new bool) {
	if s.lanes == nil {
		s.lanes = map[string]*indexLane{}
	}
	for _, to := range w.to {
		if s.lanes[to] == nil {
			s.lanes[to] = &indexLane{}
		}
		l := s.lanes[to]
		if l.name != "" && new { // the session is over, and the cluster aborts what it had open
			w.givesUp(l, to, true)
		}
		l.next, l.due = l.acked+1, time.Time{}
	}
}

// givesUp notes that a stream is aborted.
func (w *writer) givesUp(l *indexLane, to string, lost bool) {
	w.over[l.name] = overStream{to: to, how: "abort", lost: lost}
	w.given++
	l.name = ""
}

func (s *byIndex) say(w *writer, to string, now time.Time) bool {
	l := s.lanes[to]
	if now.Before(l.due) {
		return l.name != ""
	}
	if l.name == "" {
		if w.books.quiet.Load() {
			return false
		}
		*l = indexLane{made: l.made + 1, name: fmt.Sprintf("%s-%d", to, l.made), parts: 20 + w.rnd.IntN(60), acked: -1}
	}
	if l.next > l.parts && now.Sub(l.last) > 5*time.Second {
		l.next = l.acked + 1
	}
	if l.next > l.parts {
		return true
	}
	switch l.next {
	case 0:
		w.tell(`{"type":"send","to":%q,"stream_id":%q,"stream":true,"index":0,"receipts":["stored"],"payload":{}}`, to, l.name)
	case l.parts:
		w.tell(`{"type":"send_end","to":%q,"stream_id":%q,"index":%d}`, to, l.name, l.next)
		l.last = now
	default:
		w.tell(`{"type":"send_chunk","to":%q,"stream_id":%q,"index":%d,"chunk":"x"}`, to, l.name, l.next)
	}
	l.next++
	l.due = now.Add(w.about(4 * time.Millisecond))
	return true
}

func (s *byIndex) hear(w *writer, f heard) {
	l := s.lanes[f.To]
	switch {
	case l == nil || l.name == "" || l.name != f.StreamID:
	case f.Type == "receipt" && f.Status == "stored" && f.Index != nil:
		if l.acked = max(l.acked, *f.Index); l.acked == l.parts {
			w.over[l.name] = overStream{to: f.To, how: "end"}
			l.name = ""
		}
	case f.Type != "error":
	case f.Code == "STREAM_ABORTED":
		w.givesUp(l, f.To, false)
	case f.Code == "STREAM_NOT_FOUND" && l.acked >= 0:
		w.books.fault("%s was told STREAM_NOT_FOUND of %s, of which %d is receipted", w.id, l.name, l.acked)
	default:
		l.next, l.due = l.acked+1, time.Now().Add(again)
	}
}
