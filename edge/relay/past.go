package relay

import "github.com/agora-relay/agora"

// pastStream is what a sender keeps in mind of a stream that is not open any more, or that is about to be over.
type pastStream struct {
	silent bool   // it was refused or cancelled: its later parts are dropped in silence
	cancel uint64 // number of the part that has cancelled it; 0 for none
	ended  bool   // it came to its normal end
	answer string // id of the whole answer with which it ended; empty for none

	opening string // id of the message with which it was to open, and which was refused; empty for none
	lacks   bool   // another message was dropped behind that one: the stream may not open any more, as it would be missing
}

// pastStreams is the streams of a sender that are not open any more, those that were added last. The lock of its
// laneSet guards it.
type pastStreams struct {
	all    map[streamKey]*pastStream
	order  []streamKey // of all, the oldest first
	silent int         // how many are: mostly none
}

// remembered is how many refused, cancelled or ended streams a sender keeps in mind.
const remembered = 1024

// at returns what is known of a stream, which is kept in mind from now on.
func (p *pastStreams) at(k streamKey) *pastStream {
	if x := p.all[k]; x != nil {
		return x
	}
	if len(p.order) >= remembered {
		p.speak(p.order[0])
		delete(p.all, p.order[0])
		p.order = p.order[1:]
	}
	x := &pastStream{}
	put(&p.all, k, x)
	p.order = append(p.order, k)
	return x
}

// isSilent reports whether the later parts of a stream are dropped.
func (p *pastStreams) isSilent(k streamKey) bool {
	if p.silent == 0 {
		return false
	}
	x := p.all[k]
	return x != nil && x.silent
}

// silence has the later parts of a stream be dropped, as it is refused, or cancelled by the part with a number; false
// where they are already.
func (p *pastStreams) silence(k streamKey, n uint64) bool {
	x := p.at(k)
	if x.silent {
		if n == 0 {
			x.cancel = 0 // what stands before the cancel is not answered either
		}
		return false
	}
	x.silent, x.cancel = true, n
	p.silent++
	return true
}

// speak has the parts of a stream be dropped no more.
func (p *pastStreams) speak(k streamKey) {
	if x := p.all[k]; x != nil && x.silent {
		x.silent, x.cancel = false, 0
		p.silent--
	}
}

// drops reports whether a part belongs to a stream that was answered for already. A new start makes it a stream again;
// an end ends the silence. What stands before a cancel by its number n may have been refused for the moment: it comes
// again, and is answered.
func (p *pastStreams) drops(k streamKey, part agora.Part, n uint64) bool {
	if part == agora.Whole || !p.isSilent(k) || n > 0 && n < p.all[k].cancel {
		return false
	}
	if part == agora.Start || part.Ends() {
		p.speak(k)
	}
	return part != agora.Start
}

// hasEnded reports whether a stream came to its normal end.
func (p *pastStreams) hasEnded(k streamKey) bool {
	x := p.all[k]
	return x != nil && x.ended
}

// isAnswer reports whether a stream has ended by the whole answer of an id.
func (p *pastStreams) isAnswer(k streamKey, id string) bool {
	x := p.all[k]
	return x != nil && id != "" && x.answer == id
}

// unanswer notes that the end of a stream was refused: it may have been a whole answer.
func (p *pastStreams) unanswer(k streamKey) {
	if x := p.all[k]; x != nil {
		x.answer = ""
	}
}

// unopen notes the id of a message with which a stream was to open, and which was refused.
func (p *pastStreams) unopen(k streamKey, id string) {
	x := p.at(k)
	x.opening, x.lacks = id, false
}

// reopens reports whether a message of a stream that was refused is the one with which it was to open, said again, and
// whether it may open now. Another one is dropped where silent says so.
func (p *pastStreams) reopens(k streamKey, id string, silent bool) (again, may bool) {
	x := p.all[k]
	if x == nil || x.opening == "" {
		return false, false
	}
	if x.opening == id {
		return true, !x.lacks
	}
	x.lacks = x.lacks || silent
	return false, false
}
