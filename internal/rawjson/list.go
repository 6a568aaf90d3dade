package rawjson

// List walks the values of one list. After Next has returned false the scanner stands behind the list, or has failed.
type List struct {
	Scanner
	depth  int
	opened bool

	Val []byte // raw
}

// NewList returns a walk over the list that b begins with. Objects and lists may stand in each other depth times, the list itself counted.
func NewList(b []byte, depth int) List {
	return List{Scanner: Scanner{b: b, max: depth}, depth: 1}
}

// Next goes to the next value.
func (l *List) Next() bool {
	if !l.opened {
		return l.open()
	}
	l.Space()
	if l.take(']') {
		return false
	}
	if !l.take(',') {
		return l.fail("a comma or the end of a list should be here")
	}
	l.Space()
	return l.element()
}

func (l *List) open() bool {
	if l.depth > l.max {
		return l.fail("it is nested too deeply")
	}
	if !l.take('[') {
		return l.fail("a list should be here")
	}
	l.opened = true
	l.Space()
	if l.take(']') {
		return false
	}
	return l.element()
}

func (l *List) element() bool {
	from := l.i
	if !l.Value(l.depth) {
		return false
	}
	l.Val = l.b[from:l.i]
	return true
}
