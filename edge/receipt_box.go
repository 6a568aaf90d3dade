package edge

import "sync"

// receiptBox gathers cumulative receipts until the writer comes for them: of
// each lane, and of each stream, the last one says it all.
type receiptBox struct {
	mu  sync.Mutex // guards box
	box map[streamKey]Notice
}

func (b *receiptBox) add(r Notice, conn Conn) {
	b.mu.Lock()
	first := len(b.box) == 0
	if b.box == nil {
		b.box = map[streamKey]Notice{}
	}
	b.box[streamKey{r.To, r.Stream}] = r
	b.mu.Unlock()
	if first {
		conn.Wake()
	}
}

// TellReceipts queues the receipts that have gathered, as Pull does first: for a door whose Pull waits.
func (s *Session) TellReceipts() { s.out.receipts.flush(s.conn) }

func (b *receiptBox) flush(conn Conn) {
	b.mu.Lock()
	box := b.box
	b.box = nil
	b.mu.Unlock()
	for _, r := range box {
		conn.Notify(r)
	}
}
