package broker

// laneState is how a lane stands with the log.
type laneState uint8

const (
	laneActive    laneState = iota // it sends; nothing is in doubt, but that an earlier holder may have used it
	laneRecovers                   // it asks the log where it stands; what comes gathers
	laneSuspended                  // it still asks, too long for those who wait: what comes is refused at once
	laneDead                       // a younger epoch holds it, or it can't continue
	laneEnded                      // Close or Park was called
	laneStates
)

// laneEvent is what happens to a lane.
type laneEvent uint8

const (
	laneDoubts    laneEvent = iota // the fate of a record, or what an earlier holder has stored, is not known
	laneGivesUp                    // the log takes too long to say, or is full
	laneLearns                     // the log has said where the lane stands
	laneIsDeposed                  // a younger epoch holds the lane, or it has lost more streams than it can abort
	laneCloses                     // it is put aside, or over
	laneEvents
)

// laneNext is the life of a lane: what each event makes of it.
var laneNext = [laneStates][laneEvents]laneState{
	//               doubts         gives up       learns      is deposed  closes
	laneActive:    {laneRecovers, laneActive, laneActive, laneDead, laneEnded},
	laneRecovers:  {laneRecovers, laneSuspended, laneActive, laneDead, laneEnded},
	laneSuspended: {laneSuspended, laneSuspended, laneActive, laneDead, laneEnded},
	laneDead:      {laneDead, laneDead, laneDead, laneDead, laneEnded},
	laneEnded:     {laneEnded, laneEnded, laneEnded, laneEnded, laneEnded},
}

func (s laneState) String() string {
	return [...]string{"active", "recovers", "suspended", "dead", "ended"}[s]
}

// over reports whether the lane takes nothing more.
func (s laneState) over() bool { return s == laneDead || s == laneEnded }

// asks reports whether a goroutine of the lane's asks the log.
func (s laneState) asks() bool { return s == laneRecovers || s == laneSuspended }

// refuses reports whether the lane refuses what comes.
func (s laneState) refuses() bool { return s == laneSuspended || s.over() }

// hears moves the lane on by an event, and reports whether that changes it. The lock is held.
func (l *Lane) hears(e laneEvent) (changes bool) {
	was := l.state
	l.state = laneNext[was][e]
	return l.state != was
}
