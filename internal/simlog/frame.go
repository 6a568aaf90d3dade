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

// split takes the first frame off b; n is how many bytes it has, 0 while it is not there as a whole.
func split(b []byte) (f frame, n int) {
	end := bytes.Index(b, newline)
	if end < 0 {
		return f, 0
	}
	words := bytes.Fields(b[:end])
	if len(words) == 0 {
		return frame{raw: b[:end+2]}, end + 2
	}
	f.op = string(bytes.ToUpper(words[0]))
	n = end + 2
	head, size := 0, 0
	switch f.op {
	case "PUB", "MSG":
		size = number(words[len(words)-1])
	case "HPUB", "HMSG":
		head, size = number(words[len(words)-2]), number(words[len(words)-1])
		words = words[:len(words)-1]
	default:
		f.raw = b[:n]
		return f, n
	}
	if len(b) < n+size+2 {
		return frame{}, 0
	}
	f.header, f.body = b[n:n+head], b[n+head:n+size]
	n += size + 2
	f.raw = b[:n]
	f.subject = string(words[1])
	names := words[2 : len(words)-1] // behind the subject, and before the sizes
	if f.op == "MSG" || f.op == "HMSG" {
		f.sid, names = string(names[0]), names[1:]
	}
	if len(names) > 0 {
		f.reply = string(names[0])
	}
	return f, n
}

func number(b []byte) int {
	n, err := strconv.Atoi(string(b))
	if err != nil {
		return 0
	}
	return n
}

// value returns what a header says of a name; "" where it says nothing. A stored header of that name stands before the one that the
// server adds.
func (f *frame) value(name string) string {
	i := bytes.LastIndex(f.header, []byte("\r\n"+name+":"))
	if i < 0 {
		return ""
	}
	rest := f.header[i+len(name)+3:]
	end := bytes.Index(rest, newline)
	return string(bytes.TrimSpace(rest[:end]))
}

// status returns the status that the header begins with, as 404; "" for none.
func (f *frame) status() string {
	line, _, _ := bytes.Cut(f.header, newline)
	_, rest, _ := bytes.Cut(line, []byte(" "))
	code, _, _ := bytes.Cut(rest, []byte(" "))
	return string(code)
}
