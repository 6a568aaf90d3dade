package web

import (
	"bufio"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"time"
)

// Deadlines has h answer with a deadline for each piece of an answer, and none for all of it: an answer may last for as
// long as it likes, and a peer that takes nothing is cut off. It is for servers without a WriteTimeout.
func Deadlines(h http.Handler, write time.Duration) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		p := &paced{ResponseWriter: w, control: http.NewResponseController(w), write: write}
		if r.ProtoMajor == 1 {
			p.until(time.Time{}) // that of the answer before it on this connection
		}
		defer func() {
			if !p.taken {
				p.until(time.Now().Add(write)) // for what the server has of it yet
			}
		}()
		h.ServeHTTP(p, r)
	})
}

// piece is how much of an answer has a deadline of its own.
const piece = 64 << 10

// paced is an answer whose writes have deadlines.
type paced struct {
	http.ResponseWriter
	control *http.ResponseController
	write   time.Duration
	taken   bool // by who hijacked the connection
}

// unpaced returns the answer itself, and how long a piece of it may take; no time at all where there is no bound.
func unpaced(w http.ResponseWriter) (http.ResponseWriter, time.Duration) {
	if p, ok := w.(*paced); ok {
		return p.ResponseWriter, p.write
	}
	return w, 0
}

// Write writes b, piece by piece.
func (p *paced) Write(b []byte) (n int, err error) {
	for {
		m := 0
		err = p.timed(func() (err error) {
			m, err = p.ResponseWriter.Write(b[n:min(len(b), n+piece)])
			return err
		})
		if n += m; err != nil || n >= len(b) {
			return n, err
		}
	}
}

// FlushError has what was written be sent.
func (p *paced) FlushError() error { return p.timed(p.control.Flush) }

// Flush is FlushError without its error.
func (p *paced) Flush() { _ = p.FlushError() }

// Hijack takes the connection over.
func (p *paced) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	c, rw, err := p.control.Hijack()
	p.taken = err == nil
	return c, rw, err
}

// Unwrap returns the answer itself, for a ResponseController.
func (p *paced) Unwrap() http.ResponseWriter { return p.ResponseWriter }

// timed has something written in time. No deadline is left behind: over HTTP/2 it would end an answer that is quiet.
func (p *paced) timed(do func() error) error {
	begun := time.Now()
	p.until(begun.Add(p.write))
	err := do()
	if err != nil && time.Since(begun) >= p.write && !errors.Is(err, os.ErrDeadlineExceeded) {
		err = fmt.Errorf("%w: %w", os.ErrDeadlineExceeded, err) // HTTP/2 says that the stream is closed
	}
	if err == nil {
		p.until(time.Time{})
	}
	return err
}

func (p *paced) until(t time.Time) {
	_ = p.control.SetWriteDeadline(t) // where it can't be set there is no connection
}

// stalled reports whether a peer has taken nothing in time.
func stalled(err error) bool { return errors.Is(err, os.ErrDeadlineExceeded) }
