package broker

import (
	"slices"
	"testing"
	"time"

	"github.com/agora-relay/agora"
	"github.com/agora-relay/agora/broker/record"
)

// numbersOf returns the numbers of what gathers, batch by batch.
func numbersOf(bs batches) (all [][]uint64) {
	for f := bs.first; f != nil; f = f.next {
		var ns []uint64
		for i := range f.items {
			ns = append(ns, f.items[i].m.N)
		}
		all = append(all, ns)
	}
	return all
}

func TestBatchesKeepTheOrderOfTheirItems(t *testing.T) {
	of := func(ns ...uint64) *batch {
		f := newBatch()
		for _, n := range ns {
			f.items = append(f.items, item{m: agora.Message{N: n}})
		}
		return f
	}
	var bs batches
	if bs.pop() != nil || bs.moveFirst(of(1)) {
		t.Fatal("there is a batch where there is none")
	}
	bs.pushFront(of(3, 4, 5))
	bs.push(of(6))
	f := bs.pop()
	bs.pushFront(f.split(2))
	bs.pushFront(f)
	if got := numbersOf(bs); !slices.EqualFunc(got, [][]uint64{{3, 4}, {5}, {6}}, slices.Equal) {
		t.Fatalf("split and put back they are %v", got)
	}
	f = bs.pop()
	moved := 0
	for bs.moveFirst(f) {
		moved++
	}
	if moved != 2 || bs.first != nil {
		t.Fatalf("%d batches moved, %v are left", moved, numbersOf(bs))
	}
	bs.push(f)
	bs.push(of(7))
	if got := numbersOf(bs); !slices.EqualFunc(got, [][]uint64{{3, 4, 5, 6}, {7}}, slices.Equal) {
		t.Errorf("moved together they are %v", got)
	}
	if !bs.has(func(it *item) bool { return it.m.N == 7 }) || bs.has(func(it *item) bool { return it.m.N == 8 }) {
		t.Error("what they have is not found")
	}
}

// A record is as large as may be, also where what it holds gathered beside what it has no room for.
func TestARecordIsFilledFromTheNextBatch(t *testing.T) {
	t.Parallel()
	b := testBroker(t, testServer(t, 1), nil)
	l := b.Lane(lane("s1", 1, false))
	defer l.Close()
	l.Pressed(time.Hour)
	for n := range uint64(2 * record.MaxParts) {
		m := numbered(n+1, text("token"))
		if n == 1 { // said before, so that it takes no room
			m.N = 1
		}
		l.Put(m, func(Result) {})
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	at, _ := l.cfg.valid(b.Now())
	f := l.fill(at, true)
	defer l.queue.push(f)
	if got, left := f.record.Parts(), numbersOf(l.queue); got != record.MaxParts || len(left) != 1 || left[0][0] != record.MaxParts+2 {
		t.Errorf("the record has %d parts, and %v are left", got, left)
	}
}
