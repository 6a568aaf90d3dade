package soak

import "slices"

// arrived takes a number that came to a receiver, at a position of its mailbox
// or space. It returns what was given to take, and false when this is not the first time.
func (l *line) arrived(to *track, k kind, n, seq uint64) (load any, fresh bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if n == 0 || n >= l.base+uint64(len(l.items)) {
		l.tally.violated(Altered, "%s: %s %d came to %s, and was never sent", l.name, k, n, to.name)
		return nil, false
	}
	if n <= to.last {
		return nil, l.late(to, k, n)
	}
	told := to.gaps.between(to.seq, seq)
	before := to.last
	to.last, to.seq = n, seq
	for i := max(before+1, l.base); i < n; i++ {
		l.overtake(to, i, told)
	}
	load = l.deliver(to, k, n)
	l.trim()
	return load, true
}

// deliver counts a number that came in its place.
func (l *line) deliver(to *track, k kind, n uint64) any {
	it := l.item(n)
	if it == nil || it.result == refused {
		l.tally.counts[k].delivered.Add(1)
		if n > l.forgotten {
			l.tally.violated(Untrue, "%s: %s %d came to %s although it was refused", l.name, k, n, to.name)
		}
		return nil
	}
	if it.kind != k {
		l.tally.violated(Altered, "%s: %s %d came to %s as %s", l.name, it.kind, n, to.name, k)
	}
	l.tally.arrived(k, it.at)
	it.came++
	l.reach(it)
	return it.load
}

// reach takes note that an item has come to a receiver, or was overtaken there.
func (l *line) reach(it *item) {
	if it.waiting--; it.waiting == 0 && it.result == stored {
		l.due--
	}
}

// overtake takes note that a later number came before this one.
func (l *line) overtake(to *track, n uint64, told bool) {
	it := l.item(n)
	if it.result == refused {
		return
	}
	s := &skip{to: to, n: n, told: told}
	switch it.result {
	case pending:
		it.skipped = append(it.skipped, s)
	case stored:
		l.miss(it.kind, s)
	}
	to.skips = append(to.skips, s)
	if len(to.skips) > maxSkips {
		to.skips = slices.Delete(to.skips, 0, 1)
	}
	l.reach(it)
}

// late takes a number that a later one came before, or that came already. It
// tells whether it is the first time.
func (l *line) late(to *track, k kind, n uint64) bool {
	c := l.tally.counts[k]
	i := slices.IndexFunc(to.skips, func(s *skip) bool { return s.n == n })
	if i < 0 {
		c.duplicated.Add(1)
		l.tally.violated(Duplicated, "%s: %s %d came to %s again, after %d", l.name, k, n, to.name, to.last)
		return false
	}
	s := to.skips[i]
	to.skips = slices.Delete(to.skips, i, i+1)
	s.came = true
	switch {
	case s.missed && s.told:
		c.told.Add(^uint64(0))
	case s.missed:
		c.lost.Add(-1)
	}
	c.delivered.Add(1)
	c.reordered.Add(1)
	l.tally.violated(Reordered, "%s: %s %d came to %s after %d", l.name, k, n, to.name, to.last)
	return true
}

// close counts what never came, and what nobody has answered.
func (l *line) close() {
	l.mu.Lock()
	defer l.mu.Unlock()
	for i := range l.items {
		it, n := &l.items[i], l.base+uint64(i)
		if it.result == pending {
			l.tally.result(it.kind, unknown)
		}
		if it.result != stored {
			continue
		}
		for _, to := range l.tracks {
			if to.last < n && !to.gaps.over.Load() {
				l.tally.lose(it.kind, to.gaps.between(to.seq, 0), "%s: %s %d never came to %s", l.name, it.kind, n, to.name)
			}
		}
	}
	l.items, l.base, l.due = nil, l.base+uint64(len(l.items)), 0
}
