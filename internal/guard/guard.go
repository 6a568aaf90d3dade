//go:build !sabotage

package guard

import "time"

// The protections, each asked for where a test can leave it out. Here they are constants, and the compiler drops
// what would be done without them.
const (
	Nudges    = true // a record that the log will not hand on again is told to those who listen
	Audits    = true // inboxes are compared with the log
	Gaps      = true // an inbox that misses a record reads the log
	Cursors   = true // delivery continues where the agent has got to
	Retries   = true // a record that is not answered is sent again
	IDs       = true // under the id of the first try
	Numbers   = true // what an agent sends again is known by its number
	Names     = true // or by its id
	Order     = true // nothing overtakes a number that was refused for the moment
	Fences    = true // nothing of a past holder lands behind its successor
	Epochs    = true // a younger epoch in the fence stops a holder
	Settling  = true // a newcomer waits until past holders have handed over, or are gone
	Gone      = true // a killed edge is known to be gone before its lease is over
	Leases    = true // an edge serves nobody past its lease
	Draining  = true // an edge that ends tells its agents before
	Asserts   = true // claims that presence has lost are written again
	Looks     = true // claims are looked after once in a lease, and where presence does not know one
	Whole     = true // what presence lacks means nothing while it has lost everything
	Calls     = true // what callers of a dead edge had asked is given up for who was asked
	Holds     = true // calls that presence has lost are written again
	Once      = true // a call of a name that is made again is not asked again
	First     = true // the first answer of the agent that was asked is a call's, and nothing else
	Boxes     = true // the box of a call that is over says so
	Turns     = true // numbers to a peer are settled in their order, though some go into boxes
	Acts      = true // an act that is asked for again is the same one
	Rejoins   = true // a reader that lagged gets what comes live again only where it has read all before that
	Addresses = true // an address at which edges dial is one agent's
	Adoption  = true // of those who adopt a session the first has it
	Clock     = true // the log's time is used, not the machine's
)

// WallClock is the machine's clock.
func WallClock() time.Time { return time.Now() }
