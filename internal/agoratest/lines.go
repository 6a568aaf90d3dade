package agoratest

import (
	"fmt"
	"time"

	"github.com/agora-relay/agora/internal/loadgen/verify"
)

// lines are what a talker sends and gets. The maps are never changed once it runs.
type lines struct {
	out    []*outgoing
	in     map[string]*incoming     // by sender and where it was sent
	plain  *verify.Line             // messages without a number of their own
	plains map[string]*verify.Track // such messages of others, by sender
}

func newLines() lines { return lines{in: map[string]*incoming{}, plains: map[string]*verify.Track{}} }

// incoming is what a talker gets from one sender, directly or in the space.
type incoming struct {
	from  int // the sender, among the talk's agents
	track *verify.Track
	at    time.Time     // when the last one came
	pause time.Duration // the longest between two since Mark
}

// everybody stands for the space, among those whom an agent sends to.
const everybody = -1

// line makes a line from an agent to another, or to everybody.
func (t *Talk) line(from, to int) {
	k, o := t.talkers[from], &outgoing{talk: t, next: 1}
	key, receivers := k.id, t.talkers
	if to == everybody {
		key = "#" + k.id
	} else {
		o.to, receivers = t.ids[to], t.talkers[to:to+1]
	}
	var tracks []*verify.Track
	for _, r := range receivers {
		in := &incoming{from: from, track: verify.NewTrack(r.id, &verify.Gaps{}), at: time.Now()}
		r.in[key] = in
		tracks = append(tracks, in.track)
	}
	o.line = verify.NewLine(t.tally, fmt.Sprintf("%s to %q", k.id, o.to), remembered, tracks...)
	k.out = append(k.out, o)
}

// plainLine makes a line of messages without numbers of their own.
func (t *Talk) plainLine(from, to int) {
	k, track := t.talkers[from], verify.NewTrack(t.ids[to], &verify.Gaps{})
	k.plain = verify.NewLine(t.tally, k.id+" plainly to "+t.ids[to], remembered, track)
	t.talkers[to].plains[k.id] = track
}
