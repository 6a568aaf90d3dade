package cli

import (
	"io"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/agora-relay/agora/cmd/agora/terminal"
)

// screen shows people what several agents say. Each line begins with who speaks, or with an indent where it continues
// from the line above, so that nothing that is said can look as if it came from another; of several streams that come
// at a time each has the line for a turn. Its methods may be called by many at a time, and block while the output does.
type screen struct {
	out, notes io.Writer
	colour     bool
	columns    func() int // of the terminal; 0 where out is none

	mu      sync.Mutex // guards the fields below, and those of the voices
	line    line
	open    *voice   // whose line has no end yet; nil for none
	last    *voice   // whose the line above is; nil for none
	live    []*voice // that have not ended
	waiting []*voice // have something to show while the line is another's, in order
	turn    *time.Timer
	err     error // why nothing can be shown any more
}

const (
	turnTime = 300 * time.Millisecond // how long a stream has the line while others wait
	maxRest  = 16 << 10               // bytes that a stream holds back meanwhile
)

func newScreen(out, notes io.Writer) *screen {
	return &screen{out: out, notes: notes, colour: terminal.Colourful(out), columns: terminal.Columns(out)}
}

// voice is a message, or a stream, that is being shown.
type voice struct {
	s     *screen
	head  head
	whole bool            // all of it is shown at once
	said  bool            // something of it was shown
	rest  strings.Builder // waits for the line
}

// head is what the lines of a voice begin with.
type head struct{ name, more string }

// begin returns the voice of a stream, which is named beside its sender where another one of that has not ended. Its
// end must be called.
func (s *screen) begin(h head, stream string) *voice {
	s.mu.Lock()
	defer s.mu.Unlock()
	if slices.ContainsFunc(s.live, func(v *voice) bool { return v.head == h }) {
		h.more = strings.TrimSpace(h.more + " (stream " + terminal.Visible(stream) + ")")
	}
	v := &voice{s: s, head: h}
	s.live = append(s.live, v)
	return v
}

// say shows a whole message, at once.
func (s *screen) say(h head, text string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.endLine()
	v := &voice{s: s, head: h, whole: true}
	s.show(v, text)
	if !v.said || s.open == v {
		s.finish(v)
	}
	s.next()
	return s.flush()
}

// tell shows a line of this program's own.
func (s *screen) tell(text string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.endLine()
	s.line.dim(s.colour, "* "+terminal.Visible(text), s.columns())
	s.line.newline()
	s.last = nil
	s.next()
	return s.flush()
}

// note is tell for what is not part of the output: how the program stands.
func (s *screen) note(text string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.endLine()
	s.flush()
	s.last = nil
	l := line{}
	l.dim(terminal.Colourful(s.notes), "* "+terminal.Visible(text), terminal.Columns(s.notes)())
	l.newline()
	l.writeTo(s.notes) // where it can't be shown there is nobody to tell
}

// typed notes that a line was typed: on the terminal it has ended the line that was open.
func (s *screen) typed() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.line.at, s.open, s.last = 0, nil, nil
	s.next()
	s.flush()
}

// write shows a piece of a stream: at once, or in its turn.
func (v *voice) write(text string) error {
	s := v.s
	s.mu.Lock()
	defer s.mu.Unlock()
	if text == "" {
		return s.err
	}
	if s.open == nil || s.open == v {
		s.show(v, text)
		s.next()
		return s.flush()
	}
	if v.rest.Len() == 0 {
		s.waiting = append(s.waiting, v)
	}
	v.rest.WriteString(text)
	if v.rest.Len() > maxRest {
		s.endLine()
		s.next()
	} else if s.turn == nil {
		s.turn = time.AfterFunc(turnTime, s.over)
	}
	return s.flush()
}

// end shows the rest of a stream, and ends its line.
func (v *voice) end() error {
	s := v.s
	s.mu.Lock()
	defer s.mu.Unlock()
	for v.rest.Len() > 0 { // the others that wait come before it
		s.endLine()
		s.next()
	}
	if !v.said || s.open == v {
		s.finish(v)
	}
	s.live = slices.DeleteFunc(s.live, func(other *voice) bool { return other == v })
	s.next()
	return s.flush()
}

// over ends the turn of the one who has the line.
func (s *screen) over() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.turn = nil
	if len(s.waiting) == 0 {
		return
	}
	s.endLine()
	s.next()
	if len(s.waiting) > 0 {
		s.turn = time.AfterFunc(turnTime, s.over)
	}
	s.flush()
}

// next shows what waits for as long as the line is nobody's. mu is held, as in all that follow.
func (s *screen) next() {
	for s.open == nil && len(s.waiting) > 0 {
		v := s.waiting[0]
		s.waiting = s.waiting[1:]
		text := v.rest.String()
		v.rest.Reset()
		s.show(v, text)
	}
}

// endLine ends the line of the one who has it.
func (s *screen) endLine() {
	if s.open != nil {
		s.finish(s.open)
	}
}

// finish ends a voice's line, which begins here where it has none.
func (s *screen) finish(v *voice) {
	if s.open != v {
		s.lead(v)
	}
	s.line.newline()
	s.open, s.last = nil, v
}

// show shows text of a voice, which may have the line.
func (s *screen) show(v *voice, text string) {
	width := s.columns()
	terminal.Tokens(text, func(r rune, shown string, plain bool) bool {
		switch {
		case r == '\n' && s.open == nil && v.said: // an empty line, or the end of one that others have ended
			if s.last == v {
				s.line.newline()
			}
		case r == '\n':
			s.finish(v)
		default:
			if s.open == nil {
				s.lead(v)
			}
			s.line.token(r, shown, plain, width)
		}
		v.said = true
		return true
	})
}

// lead begins a line of a voice: by its name, unless the line above is its own and nobody else's can come between.
func (s *screen) lead(v *voice) {
	if v.said && s.last == v && (v.whole || len(s.live) <= 1) {
		s.line.indent()
	} else {
		s.line.head(s.colour, v.head, s.columns())
	}
	s.open, v.said = v, true
}

// flush writes what was made.
func (s *screen) flush() error {
	if err := s.line.writeTo(s.out); s.err == nil {
		s.err = err
	}
	return s.err
}
