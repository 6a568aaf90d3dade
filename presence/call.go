package presence

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/agora-relay/agora"
)

// Call is a request for an agent by somebody who may have no session anywhere, and whose answer goes into a box of its
// own.
type Call struct {
	Tenant   string
	Box      string        // of the answer; the call's id
	From     agora.AgentID // who asks
	To       agora.AgentID // who is asked
	Request  string        // by which the one who is asked names it
	Digest   string        // of what is asked: the same name with another is another request
	Named    bool          // the caller has named it: it is done once
	Streams  bool          // its request is a stream that has not ended
	Deadline time.Time     // zero for none
}

// CallState is how a call stands.
type CallState string

// The states.
const (
	CallNew      CallState = "new"      // it was not there before
	CallOpen     CallState = "open"     // its answer is not whole
	CallAnswered CallState = "answered" // somebody has read the whole answer
	CallOver     CallState = "over"     // it was ended, as nobody waited any more
	CallOther    CallState = "other"    // its name stands for another request
	CallWaited   CallState = "waits"    // callers are left who wait for it
	CallLeft     CallState = "left"     // none is, and it was not ended
	CallGone     CallState = "gone"     // nothing is known of it
)

// Calls is which requests wait for an answer in a box, and who waits.
type Calls struct {
	*backend
	leases Leases
}

// Open writes that a caller at an edge, which knows it by an id, waits for a call, which is kept for a while: it was
// new, or one of its name was there. Nothing is written where that is CallOther or CallOver. asked reports whether its
// request is stored, which nobody knows where somebody has begun to store it longer ago than ask. One round trip; two
// for calls with a name.
func (s Calls) Open(ctx context.Context, h Holder, waiter string, c Call, keep, ask time.Duration) (state CallState, asked Asking, err error) {
	calls := []call{indexAdd(callsKey(h), 0, c.member()), {callOpenScript, c.record(), append(c.args(h.waiter(waiter), keep), ask.Milliseconds())}}
	if !c.Named {
		calls = append(calls, c.list(keep))
	}
	r, err := s.runAll(ctx, calls)
	if err != nil {
		return "", Unasked, err
	}
	state, asked = CallState(r[1].at(0).str()), Asking(r[1].at(1).int())
	if c.Named && (state == CallNew || state == CallOpen) {
		_, err = s.run(ctx, c.list(keep))
	}
	return state, asked, err
}

// Asking is what is known of a call's request.
type Asking int

// What is known. The numbers are those of the script.
const (
	Unasked  Asking = iota // it is to be stored
	Asked                  // it is stored
	Doubtful               // it may be
)

// AskAgain writes that the request of a call begins to be stored now, as it was found not to be. One round trip.
func (s Calls) AskAgain(ctx context.Context, c Call) error {
	_, err := s.run(ctx, call{callAskScript, c.record(), nil})
	return err
}

// Asked writes that the request of a call is stored: nobody who makes it again is to do so.
func (s Calls) Asked(ctx context.Context, c Call) error {
	return unavailable(s.rdb.HSet(ctx, c.record()[0], "asked", "1").Err())
}

// Streamed writes that the stream which is the request of a call has ended. One round trip.
func (s Calls) Streamed(ctx context.Context, c Call) error {
	_, err := s.run(ctx, call{callStreamedScript, c.record(), nil})
	return err
}

// Waiting is a call, and the callers at an edge that wait for it, by their ids.
type Waiting struct {
	Call
	Waiters []string
	Asking  time.Duration // how long ago an edge began to store the request; zero where it is stored
}

// Ended is a call that others have ended though callers at an edge wait for it: these have taken the edge for dead.
type Ended struct {
	Call
	Untold bool // nobody has told Drop of it: who has ended it may not have done what follows, and does so no more now that the edge is back
}

// Hold writes again what callers at an edge wait for, in case the server has lost it, and has it kept for a while from
// now on. It returns the calls that others have ended. Where the name of one stands for another request by now, that is
// left as it is: who has made it is about to be told by Open, or was. One pipeline.
func (s Calls) Hold(ctx context.Context, h Holder, open []Waiting, keep time.Duration) (ended []Ended, err error) {
	var calls []call
	for _, w := range open {
		args := append(w.args("", keep), w.Asking.Milliseconds())
		for _, id := range w.Waiters {
			args = append(args, h.waiter(id))
		}
		calls = append(calls, indexAdd(callsKey(h), 0, w.member()), call{callHoldScript, w.record(), args}, w.list(keep))
	}
	r, err := s.runAll(ctx, calls)
	if err != nil {
		return nil, err
	}
	for i, w := range open {
		if CallState(r[3*i+1].str()) == CallOver {
			ended = append(ended, Ended{Call: w.Call, Untold: !r[3*i].yes()})
		}
	}
	return ended, nil
}

// Leaving is what becomes of a call as a caller at an edge waits for it no more.
type Leaving struct {
	Call
	Waiter string // the caller's id; empty for none
	Whole  bool   // it has the whole answer
	End    bool   // else: the call is ended where nobody is left
}

// Leave writes that callers wait no more, and returns how each call stands then: CallOver for those that are ended now
// or were before. One whose answer was read is kept for a while from now on, those without a name only as long as that
// their answer may be sent once more. One pipeline.
func (s Calls) Leave(ctx context.Context, h Holder, leave []Leaving, keep, linger time.Duration) ([]CallState, error) {
	calls := make([]call, 0, 2*len(leave))
	for _, l := range leave {
		how, kept := "leave", any("")
		switch {
		case l.Whole && l.Named:
			how, kept = "answered", keep.Milliseconds()
		case l.Whole:
			how, kept = "answered", linger.Milliseconds()
		case l.End:
			how = "end"
		}
		calls = append(calls, call{callLeaveScript, l.record(), []any{h.waiter(l.Waiter), how, kept}})
	}
	for _, l := range leave {
		if l.Whole {
			calls = append(calls, indexDel(callsKey(h), anyAge, entry{member: l.member()}))
		}
	}
	r, err := s.runAll(ctx, calls)
	if err != nil {
		return nil, err
	}
	states := make([]CallState, len(leave))
	for i := range leave {
		states[i] = CallState(r[i].at(0).str())
	}
	return states, nil
}

// Drop takes calls off the lists of an edge and of the agents that were asked: all that had to be done of them is done.
// One pipeline.
func (s Calls) Drop(ctx context.Context, h Holder, over []Call) error {
	calls := make([]call, 0, 2*len(over))
	for _, c := range over {
		calls = append(calls, indexDel(callsKey(h), anyAge, entry{member: c.member()}),
			call{callUnlistScript, []string{c.listed()}, []any{c.field(), c.Box}})
	}
	_, err := s.runAll(ctx, calls)
	return err
}

// LookAgain writes that an edge is to look once more for answers that may be on their way, of calls that are over:
// should it die before, [Calls.Lost] says so. One round trip.
func (s Calls) LookAgain(ctx context.Context, h Holder, over []Call) error {
	members := make([]string, len(over))
	for i, c := range over {
		members[i] = c.member()
	}
	_, err := s.run(ctx, indexAdd(looksKey(h), 0, members...))
	return err
}

// Looked writes that nobody need look for those answers for an edge any more. One round trip.
func (s Calls) Looked(ctx context.Context, h Holder, over []Call) error {
	es := make([]entry, len(over))
	for i, c := range over {
		es[i].member = c.member()
	}
	_, err := s.run(ctx, indexDel(looksKey(h), anyAge, es...))
	return err
}

// To returns the calls that an agent was asked and that are listed with it; whole is false while the server may have
// lost some.
func (s Calls) To(ctx context.Context, tenant string, id agora.AgentID) (calls []Call, whole bool, err error) {
	all, err := s.rdb.HGetAll(ctx, Call{Tenant: tenant, To: id}.listed()).Result()
	if err != nil {
		return nil, false, unavailable(err)
	}
	for field, listed := range all {
		peer, request, _ := strings.Cut(field, "/")
		_, box, ok := strings.Cut(listed, " ")
		if ok {
			calls = append(calls, Call{
				Tenant: tenant, To: id, From: agora.AgentID(decoded(peer)), Request: decoded(request), Box: box,
			})
		}
	}
	whole, err = s.whole(ctx)
	return calls, whole && err == nil, nil
}

// ToAnswer is To without the calls that are over: an edge that was away when others ended one lists it again. Two round
// trips.
func (s Calls) ToAnswer(ctx context.Context, tenant string, id agora.AgentID) (calls []Call, whole bool, err error) {
	calls, whole, err = s.To(ctx, tenant, id)
	if err != nil || len(calls) == 0 {
		return nil, whole, err
	}
	p := s.rdb.Pipeline()
	states := make([]*redis.SliceCmd, len(calls))
	for i, c := range calls {
		states[i] = p.HMGet(ctx, c.record()[0], "state")
	}
	if _, err := p.Exec(ctx); err != nil {
		return nil, false, unavailable(err)
	}
	left := calls[:0]
	for i, c := range calls {
		if CallState(reply{states[i].Val()}.at(0).str()) != CallOver {
			left = append(left, c)
		}
	}
	return left, whole, nil
}

// IsOpen reports whether a call is open: its answer was not read.
func (s Calls) IsOpen(ctx context.Context, tenant, box string) (bool, error) {
	state, err := s.state(ctx, tenant, box)
	return state == CallOpen, err
}

// IsOver reports whether nobody waits for the answer of a call any more: it was ended, or is not known any more and the
// server has lost nothing. Two round trips at most.
func (s Calls) IsOver(ctx context.Context, tenant, box string) (bool, error) {
	state, err := s.state(ctx, tenant, box)
	if state == CallGone {
		whole, err := s.whole(ctx)
		return whole && err == nil, unavailable(err)
	}
	return state == CallOver, err
}

// state returns how a call stands; CallGone where nothing is known of it.
func (s Calls) state(ctx context.Context, tenant, box string) (CallState, error) {
	state, err := s.rdb.HGet(ctx, Call{Tenant: tenant, Box: box}.record()[0], "state").Result()
	if errors.Is(err, redis.Nil) {
		return CallGone, nil
	}
	return CallState(state), unavailable(err)
}

// Waiters returns the edges at which callers wait for an answer.
func (s Calls) Waiters(ctx context.Context, tenant, box string) ([]Holder, error) {
	fields, err := s.rdb.HKeys(ctx, Call{Tenant: tenant, Box: box}.record()[0]).Result()
	if err != nil {
		return nil, unavailable(err)
	}
	var all []Holder
	for _, f := range fields {
		word, ok := strings.CutPrefix(f, "w:")
		if at := strings.LastIndexByte(word, ' '); ok && at > 0 {
			if h := parseHolder(word[:at]); !slices.Contains(all, h) {
				all = append(all, h)
			}
		}
	}
	return all, nil
}

// waiter names a caller at an edge in a call's record.
func (h Holder) waiter(id string) string {
	if id == "" {
		return ""
	}
	return h.word() + " " + id
}

// LostCalls is the calls of an edge that is gone, which nobody waits for any more.
type LostCalls struct {
	Holder Holder
	Calls  []Call
	Looks  []Call // that were over, whose answers it was to look for: see [Calls.LookAgain]
}

// Lost ends what callers of dead edges waited for, unless others wait for it too, and returns it for the caller to tell
// those that were asked: it is returned again until Drop is told, and Looked. Some of it where it is much. One round
// trip where no edge is dead; nothing is done while the server is not whole.
func (s Calls) Lost(ctx context.Context) ([]LostCalls, error) {
	r, err := s.run(ctx, indexDue(edgesKey, 0, sweepEdges))
	if err != nil {
		return nil, err
	}
	_, edges := r.due()
	var lost []LostCalls
	for _, e := range edges {
		h := parseHolder(e.member)
		members, err := s.rdb.ZRange(ctx, callsKey(h), 0, batch-1).Result()
		if err != nil {
			return lost, unavailable(err)
		}
		looks, err := s.rdb.ZRange(ctx, looksKey(h), 0, batch-1).Result()
		if err != nil {
			return lost, unavailable(err)
		}
		if len(members)+len(looks) == 0 {
			continue
		}
		alive, err := s.leases.Alive(ctx, h)
		if err == nil && !alive {
			err = s.sure(ctx)
		}
		if err != nil || alive {
			return lost, err
		}
		of := LostCalls{Holder: h}
		if of.Calls, err = s.end(ctx, h, callsKey(h), members); err != nil {
			return lost, err
		}
		if of.Looks, err = s.end(ctx, h, looksKey(h), looks); err != nil {
			return lost, err
		}
		lost = append(lost, of)
	}
	return lost, nil
}

// end ends those of a dead edge's calls that nobody waits for, and returns them. The others are on its list no more.
func (s Calls) end(ctx context.Context, h Holder, list string, members []string) ([]Call, error) {
	calls := make([]call, len(members))
	for i, m := range members {
		calls[i] = call{callLeaveScript, []string{callRecord(m)}, []any{h.waiter("*"), "end", ""}}
	}
	replies, err := s.runAll(ctx, calls)
	if err != nil {
		return nil, err
	}
	var over []Call
	var others []entry
	for i, r := range replies {
		tenant, box, ok := splitMember(members[i])
		if !ok || CallState(r.at(0).str()) != CallOver {
			others = append(others, entry{member: members[i]})
			continue
		}
		over = append(over, Call{
			Tenant: tenant, Box: string(box), From: agora.AgentID(r.at(1).str()), To: agora.AgentID(r.at(2).str()),
			Request: r.at(3).str(), Named: r.at(4).yes(), Streams: r.at(5).yes(),
		})
	}
	if len(others) > 0 {
		_, err = s.run(ctx, indexDel(list, anyAge, others...))
	}
	return over, err
}

// any reports whether calls of an edge are left to be ended, or their answers to be looked for.
func (s Calls) any(ctx context.Context, h Holder) (bool, error) {
	n, err := s.rdb.ZCard(ctx, callsKey(h)).Result()
	if err == nil && n == 0 {
		n, err = s.rdb.ZCard(ctx, looksKey(h)).Result()
	}
	return n > 0, unavailable(err)
}

// callsKey is the index of the calls that callers at a life of an edge wait for, by time.
func callsKey(h Holder) string {
	return root + "{e:" + agora.EncodeToken(h.Edge) + "}:calls:" + agora.EncodeToken(h.Incarnation)
}

// looksKey is the index of the calls whose answers a life of an edge is to look for once more, by time.
func looksKey(h Holder) string {
	return root + "{e:" + agora.EncodeToken(h.Edge) + "}:looks:" + agora.EncodeToken(h.Incarnation)
}

// callRecord is the key of a call's record, by its member in an index.
func callRecord(member string) string { return root + "{c:" + member + "}:rec" }

func (c Call) member() string { return agora.EncodeToken(c.Tenant) + "." + agora.EncodeToken(c.Box) }

func (c Call) record() []string { return []string{callRecord(c.member())} }

// args are what most scripts take.
func (c Call) args(waiter string, keep time.Duration) []any {
	return []any{
		waiter, keep.Milliseconds(), c.Digest, string(c.From), string(c.To), c.Request, stored(c.Deadline), flag(c.Named), flag(c.Streams),
	}
}

// listed is the key of the calls of the agent that is asked, field the call's place there.
func (c Call) listed() string { return keysOf(member(c.Tenant, c.To), "").tag + "calls" }

func (c Call) field() string {
	return agora.EncodeToken(string(c.From)) + "/" + agora.EncodeToken(c.Request)
}

func (c Call) list(keep time.Duration) call {
	return call{callListScript, []string{c.listed()}, []any{c.field(), c.Box, keep.Milliseconds()}}
}
