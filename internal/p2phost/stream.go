package p2phost

import (
	"errors"
	"fmt"
	"sync"

	"github.com/libp2p/go-libp2p/core/network"
	"github.com/libp2p/go-yamux/v5"
)

// stream is a stream of a connection that is muxed.
type stream struct {
	*yamux.Stream
	of     *muxed
	window *window
	theirs bool // the peer has begun it, and it counts
	over   sync.Once
}

// Read implements network.MuxedStream.
func (s *stream) Read(b []byte) (int, error) {
	n, err := s.Stream.Read(b)
	if n > 0 {
		s.of.read(s.window, n)
	}
	return n, faultOf(err)
}

// Write implements network.MuxedStream.
func (s *stream) Write(b []byte) (int, error) {
	n, err := s.Stream.Write(b)
	return n, faultOf(err)
}

// Close implements network.MuxedStream.
func (s *stream) Close() error {
	defer s.over.Do(s.end)
	return s.Stream.Close()
}

// Reset implements network.MuxedStream.
func (s *stream) Reset() error {
	defer s.over.Do(s.end)
	return s.Stream.Reset()
}

// ResetWithError implements network.MuxedStream.
func (s *stream) ResetWithError(code network.StreamErrorCode) error {
	defer s.over.Do(s.end)
	return s.Stream.ResetWithError(uint32(code))
}

// end lets go of what the stream is counted for.
func (s *stream) end() {
	s.of.mu.Lock()
	unread := s.of.drop(s.StreamID(), s.window)
	s.of.mu.Unlock()
	if unread > 0 {
		s.of.admission.Hold(-unread)
	}
	if s.theirs {
		s.of.admission.Stream(-1)
	}
}

// faultOf returns an error of Yamux as libp2p has it.
func faultOf(err error) error {
	if err == nil {
		return nil
	}
	if e, is := errors.AsType[*yamux.StreamError](err); is {
		return &network.StreamError{Remote: e.Remote, ErrorCode: network.StreamErrorCode(e.ErrorCode), TransportError: err}
	}
	if e, is := errors.AsType[*yamux.GoAwayError](err); is {
		return &network.ConnError{Remote: e.Remote, ErrorCode: network.ConnErrorCode(e.ErrorCode), TransportError: err}
	}
	if errors.Is(err, yamux.ErrStreamReset) {
		return fmt.Errorf("%w: %w", network.ErrReset, err)
	}
	return err
}

var _ network.MuxedStream = (*stream)(nil)
