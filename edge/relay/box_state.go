package relay

// boxState is how far the answer of a box has come.
type boxState uint8

const (
	boxAwaits   boxState = iota // no answer has been said, or what was is refused together with its end: any may come
	boxDoubted                  // as boxAwaits, but the word that nobody waits for the answer may have been lost: presence is asked before one is routed
	boxRefused                  // the answer, or its start, was refused for the moment: it may come again, as its stream or as another
	boxAnswered                 // the answer, or its start, was said, and its end was not
	boxEnding                   // the end of the answer was said, though that may not be stored yet
	boxOver                     // the answer is stored, or nobody waits for it: nothing but what was said before goes there
	boxStates
)

// boxEvent is what a box hears of its answer.
type boxEvent uint8

const (
	answerSaid      boxEvent = iota // it, or its start, has been routed into the box
	answerEndSaid                   // a part that ends it has been routed, or its stream is cancelled
	answerRefused                   // it, or its start, was not stored
	answerStored                    // it, or the part that ends it, is stored
	answerDoubted                   // messages to the agent are lost, among them perhaps the word that nobody waits
	answerWaitedFor                 // presence says that somebody waits
	answerGivenUp                   // nobody waits for it
	boxEvents
)

// boxNext is the life of a box: what each event makes of it.
var boxNext = [boxStates][boxEvents]boxState{
	//           said         end said    refused     stored   doubted      waited for   given up
	boxAwaits:   {boxAnswered, boxAwaits, boxAwaits, boxOver, boxDoubted, boxAwaits, boxOver},
	boxDoubted:  {boxAnswered, boxDoubted, boxDoubted, boxOver, boxDoubted, boxAwaits, boxOver},
	boxRefused:  {boxAnswered, boxAwaits, boxRefused, boxOver, boxDoubted, boxRefused, boxOver},
	boxAnswered: {boxAnswered, boxEnding, boxRefused, boxOver, boxAnswered, boxAnswered, boxOver},
	boxEnding:   {boxAnswered, boxEnding, boxAwaits, boxOver, boxEnding, boxEnding, boxOver},
	boxOver:     {boxOver, boxOver, boxOver, boxOver, boxOver, boxOver, boxOver},
}

func (s boxState) String() string {
	return [...]string{"awaits", "doubted", "refused", "answered", "ending", "over"}[s]
}

// open reports whether any answer may come.
func (s boxState) open() bool { return s == boxAwaits || s == boxDoubted || s == boxRefused }

// answered reports whether an answer was said that may be under way still.
func (s boxState) answered() bool { return s == boxAnswered || s == boxEnding }
