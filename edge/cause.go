package edge

// Cause is why a connection ended. Its names are part of metrics and logs.
type Cause string

// The causes.
const (
	Goodbye   Cause = "goodbye"    // the agent closed the connection on purpose
	Lost      Cause = "lost"       // the connection broke
	Silent    Cause = "silent"     // no sign of life
	Stalled   Cause = "stalled"    // its socket took nothing
	TakenOver Cause = "taken_over" // it goes on elsewhere
	Kicked    Cause = "kicked"     // an operator ended it
	Drained   Cause = "drained"    // it is to connect again: the edge goes away, or has to let go of it
	Shed      Cause = "shed"       // the edge held too much
	Refused   Cause = "refused"    // the agent broke the protocol, or may not be who it is any more
	Expired   Cause = "expired"    // its credentials ended, or were taken back
)

var causes = [...]Cause{Goodbye, Lost, Silent, Stalled, TakenOver, Kicked, Drained, Shed, Refused, Expired}
