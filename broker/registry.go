package broker

import "strconv"

// register gives a lane its number and lets answers find it.
func (b *Broker) register(l *Lane) {
	n := b.next.Add(1)
	l.number = strconv.FormatUint(n, 36)
	b.lanesMu.Lock()
	b.lanes[n] = l
	b.lanesMu.Unlock()
	b.count.lanes.Add(1)
}

// unregister forgets a lane that has ended, whose lock is held.
func (b *Broker) unregister(l *Lane) {
	if l.watched { // the retrier need not hold it until it looks again
		l.watched = false
		b.retrier.lanes.remove(l)
	}
	n, _ := strconv.ParseUint(l.number, 36, 64) // made by register
	b.lanesMu.Lock()
	delete(b.lanes, n)
	b.lanesMu.Unlock()
	b.count.lanes.Add(-1)
}
