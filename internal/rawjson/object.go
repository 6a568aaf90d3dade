package rawjson

import "bytes"

// Object walks the members of one object. After Next has returned false the
// scanner stands behind the object, or has failed.
type Object struct {
	Scanner
	depth  int  // of the object itself: 1 when it stands in nothing
	opened bool // its brace has been passed over
	more   bool // so has a member

	Before int    // where the value before this member, or the opening brace, ended
	Key    []byte // raw, without quotes
	KeyAt  int    // where its opening quote stands
	Val    []byte // raw; what Next has passed over
	ValAt  int    // where the value begins
}

// NewObject returns a walk over the object that b begins with, white space before it aside. Objects and lists may stand in
// each other depth times, the object itself counted.
func NewObject(b []byte, depth int) Object {
	s := Scanner{b: b, max: depth}
	s.Space()
	return Object{Scanner: s, depth: 1}
}

// Next goes to the next member, and passes over its value.
func (o *Object) Next() bool {
	if !o.NextKey() || !o.Value(o.depth) {
		return false
	}
	o.Val = o.b[o.ValAt:o.i]
	return true
}

// NextKey goes to the next member, and stands at its value, which is for the caller to pass over: by Pass, or by a walk over
// it from Enter to Leave.
func (o *Object) NextKey() bool {
	if !o.opened && !o.open() {
		return false
	}
	o.Before = o.i
	o.Space()
	if o.take('}') {
		return false
	}
	if o.more {
		if !o.take(',') {
			return o.fail("a comma or the end of an object should be here")
		}
		o.Space()
	}
	o.more = true
	return o.key()
}

// open passes over the opening brace.
func (o *Object) open() bool {
	if o.depth > o.max {
		return o.fail("it is nested too deeply")
	}
	o.opened = true
	return o.take('{') || o.fail("an object should be here")
}

func (o *Object) key() bool {
	o.KeyAt = o.i
	if o.i >= len(o.b) || o.b[o.i] != '"' {
		return o.fail("a key should be here")
	}
	if !o.text() {
		return false
	}
	o.Key = o.b[o.KeyAt+1 : o.i-1]
	o.Space()
	if !o.take(':') {
		return o.fail("a colon should be here")
	}
	o.Space()
	o.ValAt = o.i
	return true
}

// Pass passes over the member's value.
func (o *Object) Pass() bool {
	if !o.Value(o.depth) {
		return false
	}
	o.Val = o.b[o.ValAt:o.i]
	return true
}

// Enter returns a walk over the member's value, false where that is no object. The walk goes to its end, and Leave ends it.
func (o *Object) Enter() (inner Object, ok bool) {
	return Object{Scanner: o.Scanner, depth: o.depth + 1}, o.i < len(o.b) && o.b[o.i] == '{'
}

// Leave goes on behind the value that inner has walked over. It returns false where inner has failed.
func (o *Object) Leave(inner *Object) bool {
	o.Scanner = inner.Scanner
	if o.Failed() {
		return false
	}
	o.Val = o.b[o.ValAt:o.i]
	return true
}

// Name returns the member's key with its escapes undone; it allocates only where there are some.
func (o *Object) Name() []byte {
	if bytes.IndexByte(o.Key, '\\') < 0 {
		return o.Key
	}
	return []byte(Unquote(o.b[o.KeyAt : o.KeyAt+len(o.Key)+2]))
}
