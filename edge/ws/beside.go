package ws

// A pull may wait for the log, for as long as its servers take to elect a leader. What is queued meanwhile, errors, answers and
// receipts, needs no log: another writer writes it beside the one that waits. Of what both write, that one's comes last.

// pullWaits notes that the pull waits from now on.
func (o *outbox) pullWaits() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.pulling = true
	if o.pending != nil || o.woken {
		o.startBeside()
	}
}

// pullEnds returns once nobody writes beside the pull, which is over. mu is held, and free meanwhile.
func (o *outbox) pullEnds() {
	o.pulling = false
	for o.beside {
		o.wait()
	}
}

// startBeside has another writer write beside a pull that waits. mu is held.
func (o *outbox) startBeside() {
	if !o.pulling {
		return
	}
	o.news = true
	if !o.beside && !o.called {
		o.called = true
		o.door.writers.start(o.conn)
	}
}

// wroteBeside reports whether a writer was called to write beside a pull, and does so until there is nothing, or the pull is over.
func (o *outbox) wroteBeside(w *writer) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	if !o.called {
		return false
	}
	o.called, o.beside = false, o.pulling
	for o.pulling && (o.news || o.pending != nil) {
		o.news = false
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
	o.beside = false
	o.roomy()
	return true
}
