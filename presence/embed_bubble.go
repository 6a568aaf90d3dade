package presence

import (
	"net"

	"github.com/alicebob/miniredis/v2"
)

// EmbedUnlistened starts a presence server that only Dial reaches.
func EmbedUnlistened() (*Server, error) {
	s := &Server{mini: miniredis.NewMiniRedis(), stop: make(chan struct{})}
	c, err := s.mini.Dial()
	if err != nil {
		return nil, err
	}
	c.Close()
	if err := interpret(s.mini); err != nil {
		s.mini.Close()
		return nil, err
	}
	s.done.Go(s.expire)
	return s, nil
}

// Dial connects to the server.
func (s *Server) Dial() (net.Conn, error) { return s.mini.Dial() }
