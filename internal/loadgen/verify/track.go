package verify

import "slices"

// Track is what one receiver gets of a line.
type Track struct {
	name string // of the receiver
	gaps *Gaps  // of its mailbox, or of the space
	line *Line  // whose lock guards the fields below

	last    uint64 // highest number that came
	seq     uint64 // its position
	skips   recent[*skip]
	passed  int            // numbers that later ones have overtaken, and that did not come
	ended   recent[uint64] // streams whose last part came
	aborted recent[uint64] // streams that the receiver was told to be aborted
}

// skip is a number that a later one has overtaken.
type skip struct {
	to     *Track
	kind   Kind
	n      uint64
	stream uint64
	told   bool // a gap was told there
	came   bool // later
	open   bool // it is a part of a stream, and is judged at the end
	missed bool // it was counted as lost, or told
	gone   bool // the track has forgotten it
}

// NewTrack makes a track for a line that is to be made. Several lines to one mailbox share its gaps.
func NewTrack(receiver string, g *Gaps) *Track { return &Track{name: receiver, gaps: g} }

// Name returns what comes to whom.
func (t *Track) Name() string { return t.line.name + ", at " + t.name }

// Line returns the line.
func (t *Track) Line() *Line { return t.line }

// Last returns the highest number that has come.
func (t *Track) Last() uint64 {
	t.line.mu.Lock()
	defer t.line.mu.Unlock()
	return t.last
}

// Passed returns how many numbers later ones have overtaken, and which did not come.
func (t *Track) Passed() int {
	t.line.mu.Lock()
	defer t.line.mu.Unlock()
	return t.passed
}

// Arrived takes a number that came, at a position of the receiver's mailbox or space. It returns the load that it was
// sent with, and false when it did not come for the first time, or nobody sent it.
func (t *Track) Arrived(k Kind, n, seq uint64) (load any, fresh bool) {
	l := t.line
	l.mu.Lock()
	defer l.mu.Unlock()
	if n == 0 || n >= l.base+uint64(len(l.items)) {
		l.tally.Violated(Altered, "%s: %s %d came to %s, and was never sent", l.name, k, n, t.name)
		return nil, false
	}
	if n <= t.last {
		return nil, t.late(k, n)
	}
	told := t.gaps.between(t.seq, seq)
	before := t.last
	t.last, t.seq = n, seq
	for i := max(before+1, l.base); i < n; i++ {
		t.overtake(i, told)
	}
	load = t.deliver(k, n)
	l.settle()
	return load, true
}

// Aborted takes that the receiver was told that a stream is aborted; again: the same was said before, as the edge marks
// it.
func (t *Track) Aborted(stream uint64, again bool) {
	l := t.line
	l.mu.Lock()
	defer l.mu.Unlock()
	if over := slices.Contains(t.ended, stream) || slices.Contains(t.aborted, stream); over && !again {
		l.tally.Violated(Broken, "%s: %s was told that stream %d is aborted, which was over, after %d", l.name, t.name, stream, t.last)
	}
	if !slices.Contains(t.aborted, stream) {
		t.aborted.add(stream)
	}
}

// deliver counts a number that came in its place.
func (t *Track) deliver(k Kind, n uint64) any {
	l, it := t.line, t.line.item(n)
	if it == nil || it.outcome == Refused {
		l.tally.count(k, func(c *counter) { c.Delivered++ })
		if n > l.forgotten {
			l.tally.Violated(Untrue, "%s: %s %d came to %s although it was refused", l.name, k, n, t.name)
		}
		return nil
	}
	if it.Kind != k {
		l.tally.Violated(Altered, "%s: %s %d came to %s as %s", l.name, it.Kind, n, t.name, k)
	}
	if slices.Contains(t.aborted, it.Stream) {
		l.tally.Violated(Untrue, "%s: %s %d came to %s though its stream was aborted", l.name, k, n, t.name)
	}
	if it.Ends {
		t.ended.add(it.Stream)
	}
	l.tally.Arrived(k, it.at)
	it.came++
	l.reach(it)
	return it.Load
}

// overtake records that a later number came before this one.
func (t *Track) overtake(n uint64, told bool) {
	l, it := t.line, t.line.item(n)
	if it.outcome == Refused {
		return
	}
	s := &skip{to: t, kind: it.Kind, n: n, stream: it.Stream, told: told}
	t.passed++
	switch it.outcome {
	case Pending:
		it.skipped = append(it.skipped, s)
	case Stored:
		l.miss(s)
	}
	if old := t.skips.add(s); old != nil {
		old.gone = true
		l.judge(old)
	}
	l.reach(it)
}

// late takes a number that a later one came before, or that came already. It
// reports whether it is the first time.
func (t *Track) late(k Kind, n uint64) bool {
	l := t.line
	i := slices.IndexFunc(t.skips, func(s *skip) bool { return s.n == n })
	if i < 0 {
		l.tally.Repeated(k, "%s: %s %d came to %s again, after %d", l.name, k, n, t.name, t.last)
		return false
	}
	s := t.skips[i]
	t.skips.remove(s)
	t.passed--
	s.came = true
	l.tally.count(k, func(c *counter) {
		switch {
		case s.missed && s.told:
			c.Told--
		case s.missed:
			c.Lost--
		}
		c.Delivered++
	})
	l.tally.overtaken(k, "%s: %s %d came to %s after %d", l.name, k, n, t.name, t.last)
	return true
}

// reach records that an item has come to a receiver, or was overtaken there.
func (l *Line) reach(it *item) {
	if it.waiting--; it.waiting == 0 && it.outcome == Stored {
		l.due--
	}
}

// miss takes a number that is stored, has not come and was overtaken. Whether that may be is known of a part of a
// stream when both ends have said whether the stream was aborted.
func (l *Line) miss(s *skip) {
	s.open = true
	if s.stream == 0 || s.gone {
		l.judge(s)
	}
}

// judge counts a number that was missed as lost, or as told.
func (l *Line) judge(s *skip) {
	if !s.open {
		return
	}
	s.open, s.missed = false, true
	s.told = s.told || slices.Contains(l.aborted, s.stream) && slices.Contains(s.to.aborted, s.stream)
	l.tally.Missed(s.kind, s.told, "%s: %s %d never came to %s, %d did", l.name, s.kind, s.n, s.to.name, s.to.last)
}
