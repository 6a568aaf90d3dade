package rawjson

import "bytes"

// Object walks the members of one object. After Next has returned false the
// scanner stands behind the object, or has failed.
type Object struct {
	Scanner
	depth int  // of the object itself: 1 when it stands in nothing
	more  bool // a member has been passed over

	Before int    // where the value before this member, or the opening brace, ended
	Key    []byte // raw, without quotes
	KeyAt  int    // where its opening quote stands
	Val    []byte // raw; what Next has passed over
	ValAt  int    // where the value begins
}

// NewObject returns a walk over the object that b begins with, white space before it aside: it stands behind the opening
// brace, or has failed. Objects and lists may stand in each other depth times, the object itself counted.
func NewObject(b []byte, depth int) Object {
	o := Object{Scanner: Scanner{b: b, max: depth}, depth: 1}
	o.Space()
	o.open('{', 1)
	return o
}

// Next goes to the next member, and passes over its value.
func (o *Object) Next() bool { return o.NextKey() && o.Pass() }

// NextKey goes to the next member, and stands at its value, which is for the caller to pass over: by Pass, or by a walk over
// it from Enter to Leave.
func (o *Object) NextKey() bool {
	o.Before = o.i
	if !o.next('}', o.more) {
		return false
	}
	o.more = true
	o.KeyAt = o.i
	end := o.key()
	if end < 0 {
		return false
	}
	o.Key, o.ValAt = o.b[o.KeyAt+1:end], o.i
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
	inner = Object{Scanner: o.Scanner, depth: o.depth + 1}
	if ok = o.i < len(o.b) && o.b[o.i] == '{'; ok {
		inner.open('{', inner.depth)
	}
	return inner, ok
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

// Text is [Object.Name], and answers false where the key is [Halved].
func (o *Object) Text() (name []byte, whole bool) {
	if bytes.IndexByte(o.Key, '\\') < 0 {
		return o.Key, true
	}
	return o.Name(), !Halved(o.Key)
}

// List walks the values of one list. After Next has returned false the scanner stands behind the list, or has failed.
type List struct {
	Scanner
	more bool // a value has been passed over

	Val []byte // raw
}

// NewList returns a walk over the list that b begins with: it stands behind the opening bracket, or has failed. Objects and
// lists may stand in each other depth times, the list itself counted.
func NewList(b []byte, depth int) List {
	l := List{Scanner: Scanner{b: b, max: depth}}
	l.open('[', 1)
	return l
}

// Next goes to the next value.
func (l *List) Next() bool {
	if !l.next(']', l.more) {
		return false
	}
	l.more = true
	from := l.i
	if !l.Value(1) {
		return false
	}
	l.Val = l.b[from:l.i]
	return true
}
