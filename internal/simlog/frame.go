package simlog

import (
	"bytes"
	"strconv"
)

// frame is one operation of the protocol between NATS clients and servers, payload included.
type frame struct {
	raw     []byte // all of it
	op      string // PUB, HPUB, MSG, HMSG; any other as it stands there
	subject string
	reply   string
	sid     string // of MSG and HMSG
	header  []byte
	body    []byte
}

var newline = []byte("\r\n")

// split takes the first frame off b; n is how many bytes it has, 0 while it is not there as a whole. A line that should
// announce a payload and does not is a frame of its own, without an operation: the one who gets it knows what to say.
func split(b []byte) (f frame, n int) {
	end := bytes.Index(b, newline)
	if end < 0 {
		return f, 0
	}
	n = end + 2
	words := bytes.Fields(b[:end])
	if len(words) > 0 {
		f.op = string(bytes.ToUpper(words[0]))
	}
	shape, has := shapes[f.op]
	if !has {
		f.raw = b[:n]
		return f, n
	}
	head, size, ok := shape.sizes(words)
	if !ok {
		return frame{raw: b[:n]}, n
	}
	if len(b)-n < size+2 {
		return frame{}, 0
	}
	f.header, f.body = b[n:n+head:n+head], b[n+head:n+size:n+size]
	n += size + 2
	f.raw = b[:n]
	shape.name(&f, words)
	return f, n
}

// shape is what stands in the first line of an operation that has a payload.
type shape struct {
	sid   bool // the subscription, behind the subject
	count int  // of sizes, at its end: of the header, where there is one, and of all
}

var shapes = map[string]shape{
	"PUB": {false, 1}, "HPUB": {false, 2}, "MSG": {true, 1}, "HMSG": {true, 2},
}

// sizes reads the sizes of header and of all.
func (s shape) sizes(words [][]byte) (head, all int, ok bool) {
	least := 2 + s.count // operation, subject, sizes
	if s.sid {
		least++
	}
	if len(words) < least || len(words) > least+1 {
		return 0, 0, false
	}
	all, ok = number(words[len(words)-1])
	if s.count == 2 && ok {
		head, ok = number(words[len(words)-2])
	}
	return head, all, ok && head <= all
}

// name fills in what the words between operation and sizes are.
func (s shape) name(f *frame, words [][]byte) {
	f.subject = string(words[1])
	rest := words[2 : len(words)-s.count]
	if s.sid {
		f.sid, rest = string(rest[0]), rest[1:]
	}
	if len(rest) > 0 {
		f.reply = string(rest[0])
	}
}

// number reads a size. Any that is larger than a server takes is none.
func number(b []byte) (n int, ok bool) {
	n, err := strconv.Atoi(string(b))
	return n, err == nil && 0 <= n && n <= 2*maxPayload
}

// value returns what a header says of a name; "" where it says nothing. A stored header of that name stands before the
// one that the server adds.
func (f *frame) value(name string) string {
	i := bytes.LastIndex(f.header, []byte("\r\n"+name+":"))
	if i < 0 {
		return ""
	}
	rest := f.header[i+len(name)+3:]
	line, _, _ := bytes.Cut(rest, newline)
	return string(bytes.TrimSpace(line))
}

// status returns the status that the header begins with, as 404; "" for none.
func (f *frame) status() string {
	line, _, _ := bytes.Cut(f.header, newline)
	_, rest, _ := bytes.Cut(line, []byte(" "))
	code, _, _ := bytes.Cut(rest, []byte(" "))
	return string(code)
}
