package stdio

import (
	"bufio"
	"bytes"
	"errors"
	"io"
)

// keptOfLong is how many bytes of the beginning, and of the end, of a line that is too long are kept.
const keptOfLong = 512

// Lines reads lines of bounded length. One goroutine uses it.
type Lines struct {
	in   *bufio.Reader
	most int    // bytes of a line
	line []byte // the last line
	tail []byte // the end of the last line, where that was too long
}

// NewLines returns the lines of a reader, each of most bytes at most.
func NewLines(r io.Reader, most int) *Lines {
	return &Lines{in: bufio.NewReaderSize(r, 64<<10), most: most}
}

// Next returns the next line without its end, which stays valid until the next call. It blocks until there is one. Of a
// line that is too long it returns the beginning and the end alone, and long is true. Behind the last line it returns
// the error of the reader, and with it what stands there without an end.
func (l *Lines) Next() (line, tail []byte, long bool, err error) {
	if cap(l.line) > 256<<10 {
		l.line = nil // one long line is no reason to keep as much permanently
	}
	l.line, l.tail = l.line[:0], l.tail[:0]
	for {
		part, err := l.in.ReadSlice('\n')
		if long = long || len(l.line)+len(part) > l.most; long {
			l.pass(part)
		} else {
			l.line = append(l.line, part...)
		}
		if errors.Is(err, bufio.ErrBufferFull) {
			continue
		}
		if err != nil {
			return l.line, l.tail, long, err
		}
		return bytes.TrimRight(l.line, "\r\n"), l.tail, long, nil
	}
}

// pass passes over a part of a line that is too long.
func (l *Lines) pass(part []byte) {
	if len(l.line) > keptOfLong {
		l.tail = append(l.tail, l.line[len(l.line)-keptOfLong:]...)
		l.line = append([]byte(nil), l.line[:keptOfLong]...)
	}
	n := min(len(part), keptOfLong-len(l.line))
	l.line = append(l.line, part[:n]...)
	l.tail = append(l.tail, part[n:]...)
	if len(l.tail) > keptOfLong {
		l.tail = append(l.tail[:0], l.tail[len(l.tail)-keptOfLong:]...)
	}
}
