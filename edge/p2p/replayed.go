package p2p

import (
	"encoding/binary"
	"sync"

	"github.com/libp2p/go-libp2p/core/network"
	"github.com/libp2p/go-libp2p/core/peer"
)

// replayed is a stream of which something was read, for the library's relay: it reads that once more.
type replayed struct {
	network.Stream
	of     peer.ID      // whose it is
	said   []byte       // that is read again
	told   func([]byte) // learns of the message that is written, before its peer is; nil for a stream that becomes a circuit
	held   []byte       // of that message, until it is whole
	closed func()       // called once when the stream is closed or reset; may be nil
	once   sync.Once
}

// Conn implements network.Stream.
func (r *replayed) Conn() network.Conn { return connOf{r.Stream.Conn(), r.of} }

// Read implements io.Reader.
func (r *replayed) Read(b []byte) (int, error) {
	if len(r.said) > 0 { // until then one goroutine reads
		n := copy(b, r.said)
		r.said = r.said[n:]
		return n, nil
	}
	return r.Stream.Read(b)
}

// Write implements io.Writer.
func (r *replayed) Write(b []byte) (int, error) {
	if r.told == nil {
		return r.Stream.Write(b)
	}
	r.held = append(r.held, b...)
	msg, whole := unframed(r.held)
	if !whole && len(r.held) <= maxHop {
		return len(b), nil
	}
	r.told(msg)
	r.told = nil
	if _, err := r.Stream.Write(r.held); err != nil {
		return 0, err
	}
	return len(b), nil
}

// Close implements io.Closer.
func (r *replayed) Close() error {
	defer r.over()
	return r.Stream.Close()
}

// Reset implements network.MuxedStream.
func (r *replayed) Reset() error {
	defer r.over()
	return r.Stream.Reset()
}

func (r *replayed) over() {
	if r.closed != nil {
		r.once.Do(r.closed)
	}
}

// unframed returns the message that stands behind its length.
func unframed(b []byte) ([]byte, bool) {
	n, used := binary.Uvarint(b)
	if used <= 0 || uint64(len(b)-used) < n {
		return nil, false
	}
	return b[used : used+int(n)], true
}
