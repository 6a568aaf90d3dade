package ws

import "net"

// attempt writes to a socket as much as it takes at once.
type attempt struct {
	bytes []byte
	taken int
	write func(fd uintptr)
}

func newAttempt() *attempt {
	a := new(attempt)
	a.write = func(fd uintptr) { a.taken = writeSome(fd, a.bytes) }
	return a
}

// on writes b and returns how many bytes the socket took; 0 where it can't be written to without waiting, as over TLS. Why it
// took no more is for who waits to find out. Nobody else may be writing to it.
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
