package edge

// Cause is why a connection ended; the zero value says that this is not known yet. The names of causes are part of metrics and logs.
type Cause uint8

// The causes.
const (
	Goodbye   Cause = iota + 1 // the agent closed the connection on purpose
	Lost                       // the connection broke
	Silent                     // no sign of life
	Stalled                    // its socket took nothing
	TakenOver                  // it goes on elsewhere
	Kicked                     // an operator ended it
	Drained                    // it is to connect again: the edge goes away, or has to let go of it
	Shed                       // the edge held too much
	Refused                    // the agent broke the protocol, or may not be who it is any more
	Expired                    // its credentials ended, or were taken back
)

var causes = [...]string{
	Goodbye: "goodbye", Lost: "lost", Silent: "silent", Stalled: "stalled", TakenOver: "taken_over",
	Kicked: "kicked", Drained: "drained", Shed: "shed", Refused: "refused", Expired: "expired",
}

// String returns the name of the cause; empty where it is not known.
func (c Cause) String() string { return causes[c] }
