package ws

import (
	"bufio"
	"net"
	"net/http"

	"github.com/agora-relay/agora/edge/admission"
	"github.com/agora-relay/agora/internal/early"
)

// hijacker notes which socket gorilla takes over from the HTTP server for its handshake. After that
// gorilla is not needed any more: frames are read and written by this package.
type hijacker struct {
	http.ResponseWriter
	socket net.Conn
}

// Hijack takes the connection over from the HTTP server.
func (h *hijacker) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	socket, rw, err := early.Handshake{ResponseWriter: h.ResponseWriter}.Hijack()
	if pending, ok := socket.(*admission.PendingConn); ok {
		socket = pending.NetConn() // it was admitted: what it sends counts elsewhere
	}
	h.socket = socket
	return socket, rw, err
}
