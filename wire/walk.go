package wire

import (
	"bytes"
	"encoding/json"
)

// object walks the members of the object that begins at the scanner. After
// next has returned false the scanner stands behind the object, or has failed.
type object struct {
	scanner
	depth  int // of the object itself: 1 when it stands in nothing
	opened bool

	before int    // where the value before this member, or the opening brace, ended
	key    []byte // raw, without quotes
	keyAt  int    // where its opening quote stands
	val    []byte // raw
	valAt  int    // where it begins
}

// next goes to the next member.
func (o *object) next() bool {
	if !o.opened {
		return o.open()
	}
	o.before = o.i
	o.space()
	if o.take('}') {
		return false
	}
	if !o.take(',') {
		return o.fail("a comma or the end of an object should be here")
	}
	o.space()
	return o.member()
}

// open goes to the first member.
func (o *object) open() bool {
	if o.depth > o.max {
		return o.fail("it is nested too deeply")
	}
	if !o.take('{') {
		return o.fail("an object should be here")
	}
	o.opened, o.before = true, o.i
	o.space()
	if o.take('}') {
		return false
	}
	return o.member()
}

func (o *object) member() bool {
	o.keyAt = o.i
	if o.i >= len(o.b) || o.b[o.i] != '"' {
		return o.fail("a key should be here")
	}
	if !o.text() {
		return false
	}
	o.key = o.b[o.keyAt+1 : o.i-1]
	o.space()
	if !o.take(':') {
		return o.fail("a colon should be here")
	}
	o.space()
	o.valAt = o.i
	if !o.value(o.depth) {
		return false
	}
	o.val = o.b[o.valAt:o.i]
	return true
}

// name returns the member's key with its escapes undone; it allocates only where there are some.
func (o *object) name() []byte {
	if bytes.IndexByte(o.key, '\\') < 0 {
		return o.key
	}
	return []byte(unquote(o.b[o.keyAt : o.keyAt+len(o.key)+2]))
}

// list walks the values of the array that begins at the scanner.
type list struct {
	scanner
	depth  int
	opened bool

	val []byte // raw
}

// next goes to the next value.
func (l *list) next() bool {
	if !l.opened {
		if l.depth > l.max {
			return l.fail("it is nested too deeply")
		}
		if !l.take('[') {
			return l.fail("a list should be here")
		}
		l.opened = true
		l.space()
		if l.take(']') {
			return false
		}
		return l.element()
	}
	l.space()
	if l.take(']') {
		return false
	}
	if !l.take(',') {
		return l.fail("a comma or the end of a list should be here")
	}
	l.space()
	return l.element()
}

func (l *list) element() bool {
	from := l.i
	if !l.value(l.depth) {
		return false
	}
	l.val = l.b[from:l.i]
	return true
}

// unquote returns the string that valid raw JSON, quotes included, stands for.
func unquote(raw []byte) string {
	if bytes.IndexByte(raw, '\\') < 0 {
		return string(raw[1 : len(raw)-1])
	}
	var s string
	if err := json.Unmarshal(raw, &s); err != nil {
		return "" // the scanner has checked it: it can't fail
	}
	return s
}
