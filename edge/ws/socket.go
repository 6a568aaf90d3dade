package ws

import (
	"bufio"
	"errors"
	"net"
	"net/http"

	"github.com/agora-relay/agora/edge/admission"
)

// hijacker notes which socket gorilla takes over from the HTTP server for its handshake. After that
// gorilla is not needed any more: frames are read and written by this package.
type hijacker struct {
	http.ResponseWriter
	socket net.Conn
}

// Hijack takes the connection over from the HTTP server.
func (h *hijacker) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	w, ok := h.ResponseWriter.(http.Hijacker)
	if !ok {
		return nil, nil, errors.New("connection can't be taken over")
	}
	socket, rw, err := w.Hijack()
	if pending, ok := socket.(*admission.PendingConn); ok {
		socket = pending.NetConn() // it was admitted: what it sends counts elsewhere
	}
	h.socket = socket
	return socket, rw, err
}
