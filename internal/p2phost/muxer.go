package p2phost

import (
	"context"
	"encoding/binary"
	"errors"
	"math"
	"net"
	"sync"
	"sync/atomic"

	"github.com/libp2p/go-libp2p/core/network"
	lib "github.com/libp2p/go-libp2p/p2p/muxer/yamux"
	"github.com/libp2p/go-yamux/v5"
)

// muxer makes connections that are Yamux, and counts for each what has come over it and was not read yet: Yamux lets a
// peer send 256 KiB and more on every stream before anybody reads. What a peer announces counts from then on, as room
// is made for all of it.
type muxer struct {
	config   *yamux.Config
	admitter Admitter
	grown    atomic.Int64 // bytes by which windows of streams are larger than at first
}

const (
	windowSize  = 4 << 20  // how much a stream may have unread once its reader has shown to be fast; until then it is Yamux' 256 KiB
	grownWindow = 64 << 20 // by how much windows of all streams together may be larger than that
)

// newMuxer returns the muxer of a host.
func newMuxer(a Admitter) *muxer {
	config := *lib.DefaultTransport.Config()
	config.MaxStreamWindowSize, config.MaxIncomingStreams = windowSize, peerStreams
	return &muxer{config: &config, admitter: a}
}

var errNotAdmitted = errors.New("the connection may not stay")

// NewConn implements network.Multiplexer. It asks the Admitter: what is muxed is a peer's, and secured.
func (m *muxer) NewConn(nc net.Conn, isServer bool, _ network.PeerScope) (network.MuxedConn, error) {
	whose, is := nc.(network.ConnSecurity)
	if !is {
		return nil, errNotAdmitted
	}
	over := acceptedOf(nc)
	admission, err := m.admitter.Admit(Secured{Conn: nc, Peer: whose.RemotePeer(), Accepted: over.netConn(), Dialled: !isServer})
	if err != nil {
		return nil, err
	}
	over.secured()
	c := &muxed{admission: admission, parity: 1, streams: map[uint32]*window{}}
	open := yamux.Client
	if isServer {
		open, c.parity = yamux.Server, 0
	}
	c.session, err = open(&counted{Conn: nc, of: c}, m.config, m.span)
	if err != nil {
		admission.Release()
		return nil, err
	}
	return c, nil
}

// span returns what counts the window of one stream.
func (m *muxer) span() (yamux.MemoryManager, error) { return &span{of: m}, nil }

// span counts the window of one stream.
type span struct {
	of    *muxer
	mu    sync.Mutex // guards the field below
	grown int
}

var errWindows = errors.New("windows are as large as they may be")

// ReserveMemory implements yamux.MemoryManager: the first window is the protocol's, and what its reader has not read is
// counted. Without more of it a stream continues as it is.
func (s *span) ReserveMemory(size int, priority uint8) error {
	if priority == network.ReservationPriorityAlways {
		return nil
	}
	if s.of.grown.Add(int64(size)) > grownWindow {
		s.of.grown.Add(-int64(size))
		return errWindows
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.grown += size
	return nil
}

// ReleaseMemory implements yamux.MemoryManager.
func (s *span) ReleaseMemory(size int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	size = min(size, s.grown)
	s.grown -= size
	s.of.grown.Add(-int64(size))
}

// Done implements yamux.MemoryManager.
func (s *span) Done() { s.ReleaseMemory(math.MaxInt) }

// muxed is a connection that is Yamux.
type muxed struct {
	session   *yamux.Session
	admission Admission
	parity    uint32 // of the streams that are begun here: odd for who has dialled
	release   sync.Once

	mu      sync.Mutex // guards the fields below
	streams map[uint32]*window
	waiting []uint32 // streams that the peer has begun and nobody has accepted yet, in their order
}

// window is what has come on a stream and was not read.
type window struct{ unread int }

// As implements network.MuxedConn.
func (c *muxed) As(target any) bool {
	switch t := target.(type) {
	case *Admission:
		*t = c.admission
	case **yamux.Session:
		*t = c.session
	default:
		return false
	}
	return true
}

// came counts what a peer announces on a stream, and reports whether the connection may stay.
func (c *muxed) came(id uint32, begins bool, n int) bool {
	c.mu.Lock()
	w := c.streams[id]
	if w == nil && begins && id%2 != c.parity {
		w = new(window)
		c.streams[id] = w
		c.waiting = append(c.waiting, id)
	}
	if w != nil { // else it is over, and nothing is kept
		w.unread += n
	}
	c.mu.Unlock()
	return w == nil || n == 0 || c.admission.Hold(n)
}

// read counts bytes that were read of a stream.
func (c *muxed) read(w *window, n int) {
	c.mu.Lock()
	n = min(n, w.unread)
	w.unread -= n
	c.mu.Unlock()
	if n > 0 {
		c.admission.Hold(-n)
	}
}

// drop forgets a stream, and returns what it had unread. mu is held.
func (c *muxed) drop(id uint32, w *window) (unread int) {
	if w == nil {
		return 0
	}
	if c.streams[id] == w {
		delete(c.streams, id)
	}
	unread, w.unread = w.unread, 0
	return unread
}

// OpenStream implements network.MuxedConn.
func (c *muxed) OpenStream(ctx context.Context) (network.MuxedStream, error) {
	s, err := c.session.OpenStream(ctx)
	if err != nil {
		return nil, faultOf(err)
	}
	return c.begin(s, false), nil
}

// begin returns a stream, of which something may have come already.
func (c *muxed) begin(s *yamux.Stream, theirs bool) *stream {
	c.mu.Lock()
	defer c.mu.Unlock()
	w := c.streams[s.StreamID()]
	if w == nil {
		w = new(window)
		c.streams[s.StreamID()] = w
	}
	return &stream{Stream: s, of: c, window: w, theirs: theirs}
}

// AcceptStream implements network.MuxedConn. Streams beyond what the peer may have open are reset.
func (c *muxed) AcceptStream() (network.MuxedStream, error) {
	for {
		s, err := c.session.AcceptStream()
		if err != nil {
			return nil, faultOf(err)
		}
		c.passOver(s.StreamID())
		if c.admission.Stream(1) {
			return c.begin(s, true), nil
		}
		refused := c.begin(s, false)
		_ = refused.ResetWithError(network.StreamResourceLimitExceeded)
	}
}

// passOver forgets streams that Yamux has refused by itself: those that were begun before one that comes now.
func (c *muxed) passOver(now uint32) {
	c.mu.Lock()
	defer c.mu.Unlock()
	unread := 0
	for len(c.waiting) > 0 {
		id := c.waiting[0]
		if c.waiting = c.waiting[1:]; id == now {
			break
		}
		unread += c.drop(id, c.streams[id])
	}
	if unread > 0 {
		c.admission.Hold(-unread)
	}
}

// Close implements network.MuxedConn.
func (c *muxed) Close() error {
	defer c.end()
	return c.session.Close()
}

// CloseWithError implements network.MuxedConn.
func (c *muxed) CloseWithError(code network.ConnErrorCode) error {
	defer c.end()
	return c.session.CloseWithError(uint32(code))
}

// end lets go of all that was counted for the connection.
func (c *muxed) end() {
	c.release.Do(c.admission.Release)
}

// IsClosed implements network.MuxedConn.
func (c *muxed) IsClosed() bool { return c.session.IsClosed() }

// counted is what Yamux reads: it tells which frames come.
type counted struct {
	net.Conn
	of *muxed

	header [frameHeader]byte // of the frame that comes
	have   int               // bytes of it
	left   int               // bytes of the frame behind its header
}

const (
	frameHeader = 12 // version, type, flags (2), stream (4), length (4)
	typeData    = 0
	flagBegin   = 1
)

// Read implements net.Conn. Yamux reads headers and what stands behind them apart; one goroutine reads.
func (c *counted) Read(b []byte) (int, error) {
	if c.left > 0 {
		n, err := c.Conn.Read(b[:min(len(b), c.left)])
		c.left -= n
		return n, err
	}
	n, err := c.Conn.Read(b[:min(len(b), frameHeader-c.have)])
	if c.have += copy(c.header[c.have:], b[:n]); c.have == frameHeader {
		c.have = 0
		if !c.frame() {
			return 0, errNotAdmitted
		}
	}
	return n, err
}

// frame looks at a header that is complete.
func (c *counted) frame() bool {
	kind, flags := c.header[1], binary.BigEndian.Uint16(c.header[2:])
	id := binary.BigEndian.Uint32(c.header[4:])
	if kind > 1 { // about the session
		return true
	}
	n := 0
	if kind == typeData {
		n = int(binary.BigEndian.Uint32(c.header[8:]))
		c.left = n
	}
	return c.of.came(id, flags&flagBegin != 0, min(n, windowSize)) // one that is longer ends the session
}
