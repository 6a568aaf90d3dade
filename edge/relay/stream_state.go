package relay

// streamState is where a stream of a sender stands.
type streamState uint8

const (
	streamRunning streamState = iota // open: its start is in its lane, here or by an earlier holder's word to presence
	streamAwaited                    // open by an earlier holder's word: its start was refused for the moment and comes again under its number, and all of its parts with it
	streamEnding                     // open: its last part is on its way, and a start begins another stream
	streamBegins                     // not open: presence is told, and its start is on its way into a lane
	streamOwed                       // not open: its start was refused, or its last part; presence knows it until the log has no use for its end
	streamStates
)

// streamEvent is what becomes of a part of a stream.
type streamEvent uint8

const (
	startComesAgain streamEvent = iota // its start was refused for the moment before it came into its lane
	startLost                          // its start was refused before it came into its lane, and does not come again
	startSaid                          // its start goes into its lane
	endSaid                            // its last part goes into its lane
	endUnsure                          // its last part, or its start, was refused for the moment in its lane: the log may need its end
	streamEvents
)

// streamNext is the life of a stream: what each event makes of it. One whose end is stored is in no state: nothing knows it.
var streamNext = [streamStates][streamEvents]streamState{
	//             comes again    start lost     start said     end said      end unsure
	streamRunning: {streamAwaited, streamRunning, streamRunning, streamEnding, streamOwed},
	streamAwaited: {streamAwaited, streamRunning, streamRunning, streamEnding, streamOwed},
	streamEnding:  {streamEnding, streamEnding, streamEnding, streamEnding, streamOwed},
	streamBegins:  {streamOwed, streamOwed, streamBegins, streamBegins, streamOwed},
	streamOwed:    {streamOwed, streamOwed, streamOwed, streamOwed, streamOwed},
}

func (s streamState) String() string {
	return [...]string{"running", "awaited", "ending", "begins", "owed"}[s]
}

// hears moves a stream on by an event.
func (st *stream) hears(e streamEvent) { st.state = streamNext[st.state][e] }
