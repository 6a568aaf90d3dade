package p2phost

import (
	"errors"
	"io"
	"time"

	"github.com/libp2p/go-libp2p/core/network"
)

// A stream of one request and one answer, as who serves it ends it.

// BrokenOff is the error of an answer of which a part was written: its stream is to be reset, not ended.
type BrokenOff struct{ Why error }

// Error returns why.
func (b *BrokenOff) Error() string { return b.Why.Error() }

// Unwrap returns why.
func (b *BrokenOff) Unwrap() error { return b.Why }

// Watch calls gone when the caller resets its stream, and returns when that is over, or its reads have a deadline that
// has passed. What comes behind a request is for nobody.
func Watch(s network.MuxedStream, gone func()) {
	var more [256]byte
	for {
		if _, err := s.Read(more[:]); errors.Is(err, io.EOF) {
			return
		} else if err != nil {
			gone()
			return
		}
	}
}

// Finish writes the last of an answer, for which its caller has so much time, and ends the stream.
func Finish(s network.MuxedStream, b []byte, within time.Duration) {
	_ = s.SetWriteDeadline(time.Now().Add(within)) // what is over fails the write
	_, err := s.Write(b)
	if err == nil {
		err = s.CloseWrite()
	}
	if err != nil {
		_ = s.Reset()
		return
	}
	_ = s.Close() // what the caller still writes is for nobody
}

const (
	refusedBytes = 1 << 20         // of a request that is refused are taken while its caller reads why
	refusedTime  = 5 * time.Second // and for so long
)

// Refuse is Finish for a request of which not all was read. A caller that writes first and reads then has its rest
// taken, up to a bound: beyond, its stream is reset, and it may miss the answer.
func Refuse(s network.MuxedStream, b []byte, within time.Duration) {
	_ = s.SetWriteDeadline(time.Now().Add(within)) // what is over fails the write
	_, err := s.Write(b)
	if err == nil {
		err = s.CloseWrite()
	}
	if err == nil {
		_ = s.SetReadDeadline(time.Now().Add(refusedTime))
		_, err = io.CopyN(io.Discard, s, refusedBytes)
	}
	if !errors.Is(err, io.EOF) {
		_ = s.Reset()
		return
	}
	_ = s.Close()
}
