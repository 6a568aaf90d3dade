package spaces

import (
	"testing"
	"time"

	"github.com/agora-relay/agora"
	"github.com/agora-relay/agora/broker"
)

// Every state of a place meets every event: it gives nothing before its begin nor after its end, and the log where it
// is no member.
func TestAPlaceGivesWhatFollowsItsBegin(t *testing.T) {
	for s := range placeStates {
		for e := range placeEvents {
			next := placeNext[s][e]
			if next >= placeStates || s.String() == "" {
				t.Fatalf("event %d makes %v of %v", e, next, s)
			}
			var holds bool
			switch begun := s.gives(); {
			case s == placeClosed || e == placeCloses:
				holds = next == placeClosed
			case e == placeJoins: // what it has not given it is handed, or has in its queue
				holds = begun && next == placeKeepsUp || !begun && next == placeGathers
			case s == placeWaits: // only the start of the fan says where it begins
				holds = next == placeWaits
			case e == placeLeaves: // the log has what it is not handed
				holds = begun && next == placeLags || !begun && next == placeFull
			case begun:
				holds = next == s
			case s == placeFull:
				holds = next == placeLags
			case e == placeFollows:
				holds = next == placeWaits
			default:
				holds = next == placeKeepsUp
			}
			if !holds {
				t.Errorf("event %d makes %v of %v", e, next, s)
			}
		}
		if s.reads() && !s.gives() {
			t.Errorf("%v reads for nobody", s)
		}
	}
}

// What a client names is no position of the log before that has given one.
func TestAPositionIsSureOnceTheLogGaveIt(t *testing.T) {
	const record = 1 << agora.SeqShift
	p := position{seq: 900 * record} // of a log that is no more
	if p.reaches(3*record) || !p.reaches(900*record) || p.reaches(901*record) {
		t.Error("a position that a client names is beyond the fan's, or is not where the fan is")
	}
	if from := p.next(); from.After != 0 {
		t.Errorf("the log is read from %d, want from where the place began", from.After)
	}
	p.read(newEvents([]agora.Message{{Kind: agora.Gap, Seq: 5 * record}}, 0), 0)
	if p.sure || p.seq != 5*record {
		t.Errorf("behind a gap the position is %d, sure %t; want %d, false", p.seq, p.sure, 5*record)
	}
	p.read(nil, 4*record)
	if !p.sure || p.seq != 4*record || !p.reaches(3*record) || p.next().After != 4*record {
		t.Errorf("at the tail the position is %d, sure %t, want %d, true", p.seq, p.sure, 4*record)
	}
	if p.read(nil, 3*record); p.seq < 4*record {
		t.Errorf("a tail before it moves the position back to %d", p.seq)
	}
	p.from = broker.From{Lost: true}
	if p.reaches(3 * record) {
		t.Error("a place that lacks something fits the fan before it has told that")
	}
	p = position{seq: 3 * record, from: broker.From{Time: time.Now()}}
	if p.reaches(3 * record) {
		t.Error("a place that begins at a time fits the fan by a position")
	}
}
