package client

import "testing"

func TestLedgerAcknowledgesOnlyWhatIsDoneWithoutAHole(t *testing.T) {
	var l ledger
	a, b, c := l.add(10), l.add(20), l.add(30)
	l.finish(b)
	if seq, ok := l.due(); ok {
		t.Fatalf("due = %d before the first was done", seq)
	}
	l.finish(a)
	l.finish(a)
	if seq, ok := l.due(); !ok || seq != 20 {
		t.Fatalf("due = %d, %v, want 20", seq, ok)
	}
	if _, ok := l.due(); ok {
		t.Fatal("due tells the same position twice")
	}
	l.finish(c)
	if seq, ok := l.due(); !ok || seq != 30 {
		t.Fatalf("due = %d, %v, want 30", seq, ok)
	}
}
