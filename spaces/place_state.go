package spaces

import (
	"time"

	"github.com/agora-relay/agora"
	"github.com/agora-relay/agora/broker"
)

// placeState is what a place gives its session, and from where.
type placeState uint8

const (
	placeGathers placeState = iota // it gives nothing before its begin, and keeps what the fan hands on, once that has started
	placeFull                      // it gives nothing before its begin, and what it gathered found no room: it reads the log from there
	placeWaits                     // it begins where the fan starts, which it has not yet
	placeKeepsUp                   // it is a member of the fan, and gives what that hands on
	placeLags                      // it gives what it has queued, then what it reads from the log by itself
	placeClosed                    // it gives nothing more
	placeStates
)

// placeEvent is what happens to a place.
type placeEvent uint8

const (
	placeJoins   placeEvent = iota // it becomes a member of the fan
	placeLeaves                    // it is a member no more: something lies between it and the fan, or finds no room
	placeBegins                    // it is to give what follows its position
	placeFollows                   // it is to give what is stored from now on, and the fan has not started
	placeCloses                    // its session is done with it
	placeEvents
)

// placeNext is the life of a place: what each event makes of it. A fan that has not started has no members.
var placeNext = [placeStates][placeEvents]placeState{
	//            joins     leaves     begins     follows    closes
	placeGathers: {placeGathers, placeFull, placeKeepsUp, placeWaits, placeClosed},
	placeFull:    {placeGathers, placeFull, placeLags, placeLags, placeClosed},
	placeWaits:   {placeKeepsUp, placeWaits, placeWaits, placeWaits, placeClosed},
	placeKeepsUp: {placeKeepsUp, placeLags, placeKeepsUp, placeKeepsUp, placeClosed},
	placeLags:    {placeKeepsUp, placeLags, placeLags, placeLags, placeClosed},
	placeClosed:  {placeClosed, placeClosed, placeClosed, placeClosed, placeClosed},
}

func (s placeState) String() string {
	return [...]string{"gathers", "full", "waits", "keeps up", "lags", "closed"}[s]
}

// hears moves the place on by an event; mu is held.
func (p *Place) hears(e placeEvent) { p.state = placeNext[p.state][e] }

// gives reports whether the session is given what the place has.
func (s placeState) gives() bool { return s == placeWaits || s == placeKeepsUp || s == placeLags }

// reads reports whether the session is given what the log has, and not the fan.
func (s placeState) reads() bool { return s == placeWaits || s == placeLags }

// position is where a place stands in the log.
type position struct {
	seq  uint64      // of the last event put into its queue, or read
	sure bool        // the log gave that; else a client named it
	from broker.From // where it began, or last had everything
}

// read moves the position behind events that were read, none where all up to tail was. A gap is not a position of the log: it may be what a client named.
func (p *position) read(events []*Event, tail uint64) {
	p.from.Lost = p.from.Lost && len(events) == 0
	switch n := len(events); {
	case n > 0:
		p.seq, p.sure = events[n-1].Seq, events[n-1].Kind != agora.Gap
	case p.sure:
		p.seq = max(wholeRecord(p.seq), tail)
	default:
		p.seq, p.sure = tail, true
	}
}

// next returns from where the log is read.
func (p *position) next() broker.From {
	from := p.from
	if p.sure {
		from.After, from.Time = p.seq, time.Time{}
	}
	return from
}

// reaches reports whether nothing lies between the position and that of a fan. One beyond it is believed only when the log itself gave it: one
// that a client names may lie beyond the end of a log that was made anew, which is for the place's own inbox to find out.
func (p *position) reaches(fan uint64) bool {
	return !p.from.Lost && p.seq >= fan && (p.sure || p.from.Time.IsZero() && p.seq <= wholeRecord(fan))
}
