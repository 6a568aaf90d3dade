package serve

import "time"

const (
	tidyEvery  = 2 * time.Second // between two looks
	trimWorth  = 500             // connections that have come or gone for which it is worth while
	tidyQuiet  = 500             // frames a second with which an edge counts as quiet, besides
	tidyBeats  = 10              // one such frame for so many connections: signs of life
	tidyShare  = 16              // growth of memory in use, as a part of it, for which it is worth while
	tidyRest   = 300             // how many times as long as it took of processors it is not done for mere growth again
	tidyComing = 32              // growth of connections from one look to the next, as a part of them, with which many come
)

// trimmer tells when memory is to be given back to the system: once many connections have come, or gone, or once
// garbage has gathered, and the edge is quiet. The runtime lets a heap grow to twice what is in use before it collects,
// and keeps that much. Where agents talk that is what makes collecting cheap; but many that have just come leave as
// much garbage as what is kept of them, and for as long as they are silent nothing would ever need the room again. What
// looking after silent ones leaves is little in a second, and would yet be half as much as what is kept of them before
// the runtime collects it.
type trimmer struct {
	tidied int64         // connections when memory was given back last
	held   int64         // bytes of memory just after that
	next   time.Duration // when it may be given back again for mere growth
	last   int64         // connections at the last look
	frames int64         // that had come and gone by the last look
	coming bool          // many came between the last two looks
	talks  bool          // agents talked between them
}

// edgeState is what a trimmer looks at.
type edgeState struct {
	at          time.Duration // since some moment, always the same
	connections int64
	frames      int64 // that have come and gone so far
	held        int64 // bytes of memory that the runtime has of the system
}

// look reports whether memory is to be given back now. Then the caller does, and calls done.
func (t *trimmer) look(now edgeState) (tidy bool) {
	talk, moved := now.frames-t.frames, differ(now.connections, t.last)
	t.coming = now.connections >= trimWorth && now.connections-t.last >= now.connections/tidyComing
	t.frames, t.last = now.frames, now.connections
	t.talks = talk > (tidyQuiet+now.connections/tidyBeats)*int64(tidyEvery/time.Second)
	if moved > now.connections/100 || t.talks {
		return false
	}
	if differ(now.connections, t.tidied) >= max(trimWorth, t.tidied/8) {
		return true
	}
	return t.tidied >= trimWorth && now.at >= t.next && now.held > t.held+t.held/tidyShare
}

// done takes how things were when memory had been given back, and what that took of processors.
func (t *trimmer) done(now edgeState, took time.Duration) {
	t.tidied, t.held, t.next = now.connections, now.held, now.at+tidyRest*took
}

func differ(a, b int64) int64 { return max(a-b, b-a) }
