package edge

import (
	"slices"
	"testing"

	"github.com/agora-relay/agora"
)

// A reader of the log may find that a message is lost before the door has said that it was handed it: its sender is
// told nothing nevertheless. Parts of streams have readers of their own.
func TestWhatIsLostBeforeItCountsAsWrittenIsNotAcknowledged(t *testing.T) {
	var s Session
	s.cursor.proof.set(ByReader)
	o := s.receiptsOwed()
	given := func(part agora.Part, seqs ...uint64) (ds []Delivery) {
		o.handed(seqs[0])
		for _, seq := range seqs {
			m := agora.Message{Part: part, Seq: seq, Meta: agora.Meta{Receipts: agora.Acked}}
			ds = append(ds, Delivery{Message: &m})
		}
		return ds
	}
	waits := func(want ...uint64) {
		t.Helper()
		var got []uint64
		for _, r := range o.unacked {
			got = append(got, r.seq)
		}
		if !slices.Equal(got, want) {
			t.Errorf("the senders of %v wait, want %v", got, want)
		}
	}
	o.written(given(agora.Whole, 1, 2, 3))
	ds := given(agora.Whole, 4, 5, 6)
	o.lose(span{3, 4})
	o.lose(span{6, 6})
	waits(1, 2)
	o.written(ds)
	waits(1, 2, 5)
	o.written(given(agora.Chunk, 7))
	o.lose(span{7, 7})
	waits(1, 2, 5, 7)
	if o.written(given(agora.Whole, 7)); len(o.lost) > 0 {
		t.Errorf("%v is remembered, and all is written", o.lost)
	}
}
