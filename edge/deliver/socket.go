package deliver

import (
	"net"
	"sync"
	"time"
)

const (
	piece    = 64 << 10 // what one write may take: each has a deadline of its own
	stalling = 10 * time.Millisecond
)

// Progress hears of the writes to a socket: of each, how many bytes it took, and whether it had to wait until the peer
// had taken some, which is a sign of life.
type Progress interface{ Wrote(n int, eased bool) }

// WriteSocket is [Line.Write] for a socket: it writes what that takes at once, and the rest piece by piece, each of
// which the peer is to take within its patience.
func WriteSocket(s net.Conn, b []byte, w *Writer, patience time.Duration, p Progress) (taken int, err error) {
	a := attempts.Get().(*attempt)
	taken = a.on(s, b)
	attempts.Put(a)
	if taken > 0 {
		p.Wrote(taken, false)
	}
	if taken == len(b) || w == nil {
		return taken, nil
	}
	w.Waits()
	for taken < len(b) {
		n := min(len(b)-taken, piece)
		begin := time.Now()
		_ = s.SetWriteDeadline(begin.Add(patience)) // an error shows when it is written
		if _, err := s.Write(b[taken:][:n]); err != nil {
			return taken, err
		}
		taken += n
		// What the system takes at once proves nothing, as it may only fill its buffers; having had to wait for room
		// does.
		p.Wrote(n, n == piece && time.Since(begin) > stalling)
	}
	return taken, nil
}

// attempt writes to a socket as much as it takes at once.
type attempt struct {
	bytes []byte
	taken int
	write func(fd uintptr)
}

var attempts = sync.Pool{New: func() any {
	a := new(attempt)
	a.write = func(fd uintptr) { a.taken = writeSome(fd, a.bytes) }
	return a
}}

// on writes b and returns how many bytes the socket took; 0 where it can't be written to without waiting, as over TLS.
// Why it took no more, the caller finds out by waiting. Nobody else may be writing to it.
func (a *attempt) on(socket net.Conn, b []byte) int {
	tcp, direct := socket.(*net.TCPConn)
	if !direct {
		return 0
	}
	raw, err := tcp.SyscallConn()
	if err != nil {
		return 0
	}
	a.bytes, a.taken = b, 0
	_ = raw.Control(a.write) // an error leaves taken at 0
	a.bytes = nil
	return a.taken
}
