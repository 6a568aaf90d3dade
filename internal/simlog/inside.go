package simlog

import (
	"net"
	"time"
	"unsafe"

	"github.com/nats-io/nats-server/v2/server"
)

// createClient has a server take a connection: what its InProcessConn does, with a connection of ours.
//
//go:linkname createClient github.com/nats-io/nats-server/v2/server.(*Server).createClientInProcess
func createClient(s *server.Server, c net.Conn) unsafe.Pointer

// inside is the server's end of a line. Whatever the server writes goes through the faults in the goroutine that writes
// it.
type inside struct {
	*line
	down []byte // written, and not a whole frame yet; the one who writes has it alone
}

// Read reads what the client has sent.
func (s *inside) Read(p []byte) (int, error) { return s.up.Read(p) }

// Write gives the client what makes a whole frame, as far as the faults let it.
func (s *inside) Write(p []byte) (int, error) {
	if err := s.over(); err != nil {
		return 0, err
	}
	s.down = append(s.down, p...)
	rest := s.down
	for {
		f, n := split(rest)
		if n == 0 {
			break
		}
		s.log.arrives(s.line, &f)
		rest = rest[n:]
	}
	s.down = append(s.down[:0], rest...)
	return len(p), nil
}

// Close ends the connection. What has come can be read.
func (s *inside) Close() error {
	s.up.Leave()
	s.line.gone()
	return nil
}

// SetReadDeadline sets the deadline of reading.
func (s *inside) SetReadDeadline(t time.Time) error {
	s.up.SetReadDeadline(t)
	return nil
}

// SetWriteDeadline does nothing: a client that does not read is left by the line.
func (s *inside) SetWriteDeadline(time.Time) error { return nil }

// SetDeadline sets the deadline of reading.
func (s *inside) SetDeadline(t time.Time) error { return s.SetReadDeadline(t) }
