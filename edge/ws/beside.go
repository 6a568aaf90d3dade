package ws

// A pull may wait for the log, for as long as its servers take to elect a leader. What is queued meanwhile, errors, answers and
// receipts, needs no log: another writer writes it beside the one that waits. Of what both write, that one's comes last.

// beside is the writer beside a pull.
type beside struct {
	state besideState
	pull  bool // the writer waits within a pull
	news  bool // there may be receipts that are not queued yet
}

// besideState is what the writer beside a pull does.
type besideState uint8

const (
	besideNone   besideState = iota // there is none
	besideCalled                    // one is due; it may come when the pull is over, and has nothing to do then
	besideWrites                    // it writes: the pull ends behind it
)

func (s besideState) String() string { return [...]string{"none", "called", "writes"}[s] }

// call notes that there is something to write, and reports whether a writer is to be called for it: not where no pull waits, or one is there or due.
func (b *beside) call() bool {
	if !b.pull {
		return false
	}
	b.news = true
	if b.state != besideNone {
		return false
	}
	b.state = besideCalled
	return true
}

// comes notes that a writer has come, and reports whether it was called to write beside a pull.
func (b *beside) comes() bool {
	if b.state != besideCalled {
		return false
	}
	if b.state = besideNone; b.pull {
		b.state = besideWrites
	}
	return true
}

// pullWaits notes that the pull waits from now on.
func (o *outbox) pullWaits() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.beside.pull = true
	if o.pending != nil || o.woken {
		o.startBeside()
	}
}

// pullEnds returns once nobody writes beside the pull, which is over. mu is held, and free meanwhile.
func (o *outbox) pullEnds() {
	o.beside.pull = false
	for o.beside.state == besideWrites {
		o.wait()
	}
}

// startBeside has another writer write beside a pull that waits. mu is held.
func (o *outbox) startBeside() {
	if o.beside.call() {
		o.door.writers.start(o.conn)
	}
}

// wroteBeside reports whether a writer was called to write beside a pull, and does so until there is nothing, or the pull is over.
func (o *outbox) wroteBeside(w *writer) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	if !o.beside.comes() {
		return false
	}
	for o.beside.pull && (o.beside.news || o.pending != nil) {
		o.beside.news = false
		s, out := o.session.Load(), o.pending
		o.pending = nil
		o.roomy()
		o.mu.Unlock()
		sent := out == nil || o.send(out, w)
		if sent && s != nil {
			s.TellReceipts()
		}
		o.mu.Lock()
		if !sent {
			break
		}
	}
	o.beside.state = besideNone
	o.roomy()
	return true
}
