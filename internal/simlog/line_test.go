package simlog

import "testing"

// A client that has an inbox for each question has few at a time: what has ended is not looked through for each answer.
func TestALineForgetsWhereNobodyListens(t *testing.T) {
	l := &Log{}
	l.Faults.init(1)
	d := newLine(l)
	for _, frame := range []string{"SUB _INBOX.a.* 1\r\n", "SUB _INBOX.b 2\r\n", "SUB _INBOX.c 3\r\n", "UNSUB 2\r\n", "UNSUB 3 5\r\n"} {
		f, n := split([]byte(frame))
		if n != len(frame) {
			t.Fatalf("%q is read as %d bytes", frame, n)
		}
		l.leaves(d, &f)
	}
	if a, b, c := d.sidsOf("_INBOX.a.x"), d.sidsOf("_INBOX.b"), d.sidsOf("_INBOX.c"); len(a) != 1 || len(b) != 0 || len(c) != 1 {
		t.Errorf("answers come under %v, %v, %v; want one, none, one", a, b, c)
	}
}
