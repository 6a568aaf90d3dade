package rawjson

// Object walks the members of one object. After Next has returned false the
// scanner stands behind the object, or has failed.
type Object struct {
	Scanner
	depth   int  // of the object itself: 1 when it stands in nothing
	opened  bool // its brace has been passed over
	more    bool // so has a member
	escapes bool // the key has some

	Before int    // where the value before this member, or the opening brace, ended
	Key    []byte // raw, without quotes
	KeyAt  int    // where its opening quote stands
	Val    []byte // raw; what Next has passed over
	ValAt  int    // where the value begins
}

// NewObject returns a walk over the object that b begins with, white space before it aside. Objects and lists may stand
// in each other depth times, the object itself counted.
func NewObject(b []byte, depth int) Object {
	return Object{Scanner: Scanner{b: b, max: depth}, depth: 1}
}

// Next goes to the next member, and passes over its value.
func (o *Object) Next() bool { return o.NextKey() && o.Pass() }

// NextKey goes to the next member, and stands at its value, which is for the caller to pass over: by Pass, or by a walk
// over it from Enter to Leave.
func (o *Object) NextKey() bool {
	if !o.opened {
		o.i = space(o.b, o.i)
		if o.opened = o.open('{', o.depth); !o.opened {
			return false
		}
	}
	o.Before = o.i
	if !o.next('}', o.more) {
		return false
	}
	o.more = true
	o.KeyAt = o.i
	end := o.key()
	if end == 0 {
		return false
	}
	o.Key, o.ValAt, o.escapes = o.b[o.KeyAt+1:end], o.i, o.Scanner.escapes
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

// Enter returns a walk over the member's value, false where that is no object. The walk goes to its end, and Leave ends
// it.
func (o *Object) Enter() (inner Object, ok bool) {
	return Object{Scanner: o.Scanner, depth: o.depth + 1}, o.i < len(o.b) && o.b[o.i] == '{'
}

// Leave continues behind the value that inner has walked over. It returns false where inner has failed.
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
	if !o.escapes {
		return o.Key
	}
	return []byte(Unquote(o.b[o.KeyAt : o.KeyAt+len(o.Key)+2]))
}

// Text is [Object.Name], and answers false where the key is [Halved].
func (o *Object) Text() (name []byte, whole bool) {
	if !o.escapes {
		return o.Key, true
	}
	return o.Name(), !Halved(o.Key)
}

// List walks the values of one list. After Next has returned false the scanner stands behind the list, or has failed.
type List struct {
	Scanner
	opened bool // its bracket has been passed over
	more   bool // so has a value

	Val []byte // raw
}

// NewList returns a walk over the list that b begins with. Objects and lists may stand in each other depth times, the
// list itself counted.
func NewList(b []byte, depth int) List { return List{Scanner: Scanner{b: b, max: depth}} }

// Next goes to the next value.
func (l *List) Next() bool {
	if !l.opened {
		if l.opened = l.open('[', 1); !l.opened {
			return false
		}
	}
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
