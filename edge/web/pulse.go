package web

import (
	"sync/atomic"
	"time"

	"github.com/agora-relay/agora"
)

// pulse is the one timer of an answer of events: it tells when a piece of it has taken too long, and when nothing was
// said for a while. To write costs it nothing but a look at the clock, where deadlines of HTTP/2 would be messages to
// the goroutine of its connection.
type pulse struct {
	write time.Duration // that a piece may take; 0 for as long as it likes
	timer *time.Timer   // set before it fires

	began atomic.Int64 // ticks when a piece began; 0 while none is written
	ended atomic.Int64 // ticks when the last one was written
	cut   atomic.Bool  // the peer was cut off
	over  atomic.Bool
}

// step is when the timer fires next: no later than the end of a piece that begins now.
func (p *pulse) step(every time.Duration) time.Duration {
	if p.write > 0 {
		return min(every, p.write)
	}
	return every
}

func (p *pulse) begins() { p.began.Store(agora.Ticks()) }

func (p *pulse) rests() {
	p.ended.Store(agora.Ticks())
	p.began.Store(0)
}

// late reports whether a piece takes too long.
func (p *pulse) late() bool {
	began := p.began.Load()
	return began != 0 && p.write > 0 && agora.Ticks()-began >= int64(p.write)
}

// quiet reports whether nothing was said for a time, and has the timer fire again: no later than the end of a piece
// that is being written, or begins meanwhile.
func (p *pulse) quiet(every time.Duration) bool {
	now := agora.Ticks()
	if began := p.began.Load(); began != 0 {
		left := every
		if p.write > 0 {
			left = max(p.write-time.Duration(now-began), 1)
		}
		p.again(left)
		return false
	}
	since := time.Duration(now - p.ended.Load())
	if since >= every {
		p.again(p.step(every))
		return true
	}
	p.again(min(p.step(every), every-since))
	return false
}

// again sets the timer, unless it is all over.
func (p *pulse) again(d time.Duration) {
	p.timer.Reset(d)
	if p.over.Load() {
		p.timer.Stop()
	}
}

// stop ends it.
func (p *pulse) stop() {
	p.over.Store(true)
	p.timer.Stop()
}
