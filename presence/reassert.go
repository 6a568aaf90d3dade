package presence

import (
	"context"
	"slices"
	"time"

	"github.com/agora-relay/agora"
)

// Held is all that an edge knows of a session that it holds and has begun.
type Held struct {
	Claim    Claim
	Request  ClaimRequest // with the token that the session has now, and the one by which the agent came
	Position Position
	Spaces   map[string]uint64
	Lanes    []Lane
	Away     time.Duration // grace that is left where the socket is gone; 0 while it is there
	GaveUp   bool          // parts were given up as it left its holder: streams of its epoch can't go on either
}

// Reasserted is what Reassert has found.
type Reasserted struct {
	Deposed  []Claim // those that another holder has claimed since, or whose session is over
	Lost     int     // how many the server had not, or an older copy of: it has lost them, and maybe more
	Unleased bool    // the holder's lease was gone, as after a loss: there may be more to write again
}

// Reassert writes claims again after Redis lost or missed them, and the lease that they stand under, as Leases.Renew
// does: so that the one who dies right behind is found dead, and what it holds is taken from it. Where a record is gone
// it is written whole, under the same epoch; where it is there under that epoch, only what may be missing is added; a
// session that went to grace because the lease lapsed is active again. One that is Away comes back as one in its grace,
// and only where its record is gone. Memberships of spaces are added again, without telling anyone: but where the
// record was there without one, the next change of that space tells of it. A few pipelines, whatever the number.
func (s Sessions) Reassert(ctx context.Context, h Holder, cs []Held) (found Reasserted, err error) {
	calls := append(s.leases.renewal(h, ""), s.listAgain(h, cs)...) // the lease first: without it what follows is nobody's
	calls = append(append(calls, s.listAway(cs)...), s.listDialled(h, cs)...)
	first := len(calls)
	for _, x := range cs {
		c, err := s.reassertCall(h, x)
		if err != nil {
			return found, err
		}
		calls = append(calls, c)
	}
	word := calls[1].args[2].(string)
	s.beats.sent(word)
	replies, err := s.runAll(ctx, calls)
	if err != nil {
		return found, err
	}
	found.Unleased = replies[1].at(0).int() == 0
	s.beats.answered(replies[1], word)
	var again []call
	var dialled []Held // whose addresses are what again begins with
	for i, x := range cs {
		r := replies[first+i]
		if r.at(3).yes() {
			found.Lost++
		}
		if !r.at(0).yes() {
			found.Deposed = append(found.Deposed, x.Claim)
		} else if x.Request.Dial != nil { // only then: another session of the agent may have another address, and this one be another agent's
			dialled = append(dialled, x)
			again = append(again, keepAddress(x.Claim.Tenant, x.Claim.Agent, x.Request.Dial, ""))
		}
	}
	for i, x := range cs {
		r := replies[first+i]
		leaving, back := r.at(1).names(), r.at(2).names()
		for space := range x.Spaces {
			if !r.at(0).yes() || slices.Contains(leaving, space) { // who tells of that must not find it a member again
				continue
			}
			how := joinsLost
			if slices.Contains(back, space) { // it may have left meanwhile, which others were told
				how = joinsAgain
			}
			again = append(again, s.spaces.join(x.Claim, space, s.cfg.SpaceType(space), true, how))
		}
	}
	if replies, err = s.runAll(ctx, again); err != nil {
		return found, err
	}
	s.countAgain(ctx, cs)
	var contested []call
	for i, x := range dialled {
		if replies[i].at(0).str() != "" { // of one that is away Contested says nothing: the one who adopts it looks
			contested = append(contested, s.dials.contestedSoon(h, member(x.Claim.Tenant, x.Claim.Agent)))
		}
	}
	_, err = s.runAll(ctx, contested)
	return found, err
}

// countAgain has the account of cards know what the sessions say, whatever may be held: they were let in before. What
// is not theirs any more a comparison finds.
func (s Sessions) countAgain(ctx context.Context, cs []Held) {
	var all []cardEntry
	for _, x := range cs {
		card, err := encodeCard(x.Request.Card)
		if err != nil {
			continue
		}
		if e, says := ofCard(ofSession, x.Claim.Tenant, x.Claim.Agent, x.Request.Principal, card); says {
			all = append(all, e)
		}
	}
	s.cards.keep(ctx, all...)
}

// listAgain writes the indexes: batches of members, and every space in its own call.
func (s Sessions) listAgain(h Holder, cs []Held) []call {
	agents, spaces := map[string][]string{}, map[string][]string{}
	var all []string
	for _, x := range cs {
		m := member(x.Claim.Tenant, x.Claim.Agent)
		all = append(all, m)
		agents[x.Claim.Tenant] = append(agents[x.Claim.Tenant], m)
		for space := range x.Spaces {
			spaces[x.Claim.Tenant] = append(spaces[x.Claim.Tenant], agora.EncodeToken(space))
		}
	}
	calls := indexAddAll(nil, claimsKey(h), all)
	for tenant, ms := range agents {
		for chunk := range slices.Chunk(ms, batch) {
			calls = append(calls, list(tenant, chunk...))
		}
	}
	for tenant, ms := range spaces {
		calls = indexAddAll(calls, spacesKey(tenant), ms)
	}
	return calls
}

// listAway lists those that are in their grace as due when it is over.
func (s Sessions) listAway(cs []Held) (calls []call) {
	for _, x := range cs {
		if x.Away > 0 {
			calls = append(calls, indexAdd(dueKey, x.Away, member(x.Claim.Tenant, x.Claim.Agent)))
		}
	}
	return calls
}

// listDialled lists those whose connections are dialled.
func (s Sessions) listDialled(h Holder, cs []Held) (calls []call) {
	for _, x := range cs {
		if x.Request.Dial == nil {
			continue
		}
		key, m := dialsKey(h), member(x.Claim.Tenant, x.Claim.Agent)
		if x.Away > 0 {
			key = adoptKey
		}
		calls = append(calls, indexAdd(key, 0, m))
	}
	return calls
}

// indexAddAll appends calls that list members now, a batch in each.
func indexAddAll(calls []call, key string, members []string) []call {
	for len(members) > 0 {
		n := min(len(members), batch)
		calls = append(calls, indexAdd(key, 0, members[:n]...))
		members = members[n:]
	}
	return calls
}

func (s Sessions) reassertCall(h Holder, x Held) (call, error) {
	card, err := encodeCard(x.Request.Card)
	if err != nil {
		return call{}, err
	}
	// Who ended dirty before this claim is not known any more: all who held a resumed session may have.
	var dirty uint64
	before := "" // the token that fits as well, as the answer with the new one may be lost
	if x.Claim.Resumed {
		dirty, before = x.Claim.Epoch-1, x.Request.Resume
	}
	if x.GaveUp {
		dirty = x.Claim.Epoch
	}
	var lanes []any
	for _, l := range x.Lanes {
		f := laneField(l.To)
		lanes = append(lanes, f, "")
		for _, o := range l.Open {
			lanes = append(lanes, streamField(f, o.Stream), o.value())
		}
	}
	args := []any{
		x.Claim.Epoch, agora.EncodeToken(h.Edge), agora.EncodeToken(h.Incarnation), x.Request.Conn, x.Claim.Session,
		hashToken(x.Request.Token), x.Request.Principal, card.card, card.detail, stored(x.Request.Card.RegisteredAt), dirty,
		max(0, x.Away.Milliseconds()), x.Request.Dial.stored(), x.Request.Dial.by(), len(lanes) / 2, hashToken(before),
	}
	args = append(args, lanes...)
	args = append(args, s.positions.args(x.Position, millis(0), x.Spaces)...)
	return call{reassertScript, x.Claim.keys().all(), args}, nil
}
