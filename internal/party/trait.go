package party

import "strings"

// Trait is something that the dialect of a door can, or that it keeps up; or a set of such.
type Trait uint32

// The traits.
const (
	Enters    Trait = 1 << iota // an agent of it has its id to itself, is in the directory, and leaves
	Sends                       // says and hears whole messages that want no answer
	Asks                        // asks, and hears the answer, whole or streamed, of the agent that was asked
	Answers                     // is asked, and replies
	Pours                       // streams its replies
	Streams                     // opens streams, and hears those of others
	Cancels                     // gives up streams, its own and those to it
	Deadlines                   // sets deadlines
	Waits                       // what is sent to an agent that has left, or lost its connection, is heard by it when it is back
	Moves                       // an agent that loses its connection, or its edge, continues at another one: nothing is lost, doubled or out of order
	Stalls                      // an agent may read as slowly as it likes
	Exact                       // JSON keeps its bytes
	Anything                    // a payload may be any JSON value, or be missing; without it, it is an object
	Bounded                     // what is too large is refused, and the connection stays
	Rooms                       // enters spaces, publishes, and hears events
	Looks                       // sees the directory
	Heads                       // its streams begin by a word of their own, before the first chunk: that says something, and without it a chunk is none
	Lists                       // sees who is in the directory; with Looks, by which dialect too
	Mails                       // what it says and hears are messages that the cluster keeps. Without it they are parts of calls that stand at both ends: see Pair.live
	Pieces                      // what it pours is heard in the pieces in which it was said, empty ones included
	Retracts                    // gives up a question that is not answered yet, and not by a word that its addressee is to understand
	traits
)

// Everything is all traits.
const Everything = traits - 1

var traitNames = []string{
	"Enters", "Sends", "Asks", "Answers", "Pours", "Streams", "Cancels", "Deadlines", "Waits", "Moves", "Stalls", "Exact", "Anything", "Bounded", "Rooms", "Looks", "Heads", "Lists", "Mails", "Pieces", "Retracts",
}

// String names the traits of a set.
func (t Trait) String() string {
	var names []string
	for i, name := range traitNames {
		if t&(1<<i) != 0 {
			names = append(names, name)
		}
	}
	return strings.Join(names, "+")
}
