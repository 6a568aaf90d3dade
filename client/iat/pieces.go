package iat

import (
	"sync"
	"unicode/utf8"
)

// pieces sends text in pieces, one after another: what comes while one is under way goes with the next. Its methods may
// be called at the same time.
type pieces struct {
	send func(text string) error
	work sync.WaitGroup // a goroutine, while there is something to send

	mu      sync.Mutex // guards the fields below
	changed sync.Cond
	text    []byte // that waits
	sends   bool
	err     error // why nothing is sent any more
}

const (
	pieceBytes = 64 << 10 // of a piece at most
	waitBytes  = 1 << 20  // that wait before who writes does
)

func newPieces(send func(text string) error) *pieces {
	p := &pieces{send: send}
	p.changed.L = &p.mu
	return p
}

// write adds text. It blocks while too much waits.
func (p *pieces) write(text string) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	for p.err == nil && len(p.text) > waitBytes {
		p.changed.Wait()
	}
	if p.err != nil {
		return p.err
	}
	p.text = append(p.text, text...)
	p.start()
	return nil
}

// start has what waits sent. mu is held.
func (p *pieces) start() {
	if !p.sends && whole(p.text) > 0 {
		p.sends = true
		p.work.Go(p.run)
	}
}

// run sends until nothing waits.
func (p *pieces) run() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for p.err == nil {
		n := whole(p.text)
		if n == 0 {
			break
		}
		text := string(p.text[:n])
		p.text = append(p.text[:0], p.text[n:]...)
		p.mu.Unlock()
		err := p.send(text)
		p.mu.Lock()
		p.err = err
		p.changed.Broadcast()
	}
	p.sends = false
	p.changed.Broadcast()
}

// flush blocks until all is sent but for half a character.
func (p *pieces) flush() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	for p.sends {
		p.changed.Wait()
	}
	return p.err
}

// end sends all, and returns when nothing continues. Nothing may be written after it.
func (p *pieces) end() error {
	err := p.flush()
	if rest := string(p.text); err == nil && rest != "" {
		err = p.send(rest)
	}
	p.work.Wait()
	return err
}

// whole returns how many bytes of text are the next piece, which has no half of a character.
func whole(text []byte) int {
	n := min(len(text), pieceBytes)
	for i := n - 1; i >= 0 && n-i <= utf8.UTFMax; i-- {
		if utf8.RuneStart(text[i]) {
			if !utf8.FullRune(text[i:n]) {
				return i
			}
			break
		}
	}
	return n
}
