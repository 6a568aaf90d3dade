package broker

// complete queues an answer. It is given by deliver or deliverLater, without the lock.
func (l *Lane) complete(done func(Result), r Result) {
	if done != nil {
		l.results = outcomePool.add(l.results, &outcome{done, r})
	}
}

// deliverLater has the queued answers given by another goroutine. The lock is held.
func (l *Lane) deliverLater() {
	if l.results != nil && !l.delivering && !l.deliveryQueued {
		l.deliveryQueued = true
		l.b.callbacks.post(l.deliver)
	}
}

// deliver gives the queued answers in order. One goroutine at a time does, so that
// order holds; the lock is not held while it calls.
func (l *Lane) deliver() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.deliveryQueued = false
	if l.delivering {
		return
	}
	l.delivering = true
	for l.results != nil {
		batch := l.results
		l.results = nil
		l.mu.Unlock()
		for _, o := range batch.all {
			o.done(o.r)
		}
		outcomePool.end(batch)
		l.mu.Lock()
	}
	l.delivering = false
	l.wakeWaiters()
}

// wakeWaiters wakes those who wait for the lane to be idle, if it is or never will be.
func (l *Lane) wakeWaiters() {
	if len(l.waiters) == 0 || l.state == active && !l.gaveUp && !l.idle() {
		return
	}
	for _, w := range l.waiters {
		close(w)
	}
	l.waiters = nil
}
