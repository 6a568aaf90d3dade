package simcluster

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"runtime"
	"slices"
	"time"

	"github.com/agora-relay/agora"
	"github.com/agora-relay/agora/presence"
)

// play has everything of the plan happen, waits until all is quiet, and judges.
func (w *world) play() {
	for k, a := range w.agents {
		a.connect(w.living()[k%2], false, 0)
	}
	do := w.doings()
	for _, step := range w.plan.Steps {
		do[step.Does](newDice(step.Dice))
		w.seen.Faults[step.Does]++
		<-time.After(step.Then)
		if w.failed() {
			break
		}
	}
	if !w.failed() {
		w.settle()
	}
	if w.failed() {
		w.showAll()
	}
	w.tally()
}

// doings are what may happen.
func (w *world) doings() map[string]func(*dice) {
	all := w.acts()
	maps.Copy(all, w.faults())
	maps.Copy(all, w.logFaults())
	steps, _ := w.scenes.steps()
	maps.Copy(all, steps)
	if w.plan.Losses {
		maps.Copy(all, w.losses())
	}
	return all
}

// acts are what agents do.
func (w *world) acts() map[string]func(*dice) {
	return map[string]func(*dice){
		"speaks":      w.speak,
		"comes back":  w.comeBack,
		"is cut off":  w.cutOff,
		"says bye":    func(rt *dice) { w.anAgent(rt).tell(upward{verb: goodbye}) },
		"joins":       func(rt *dice) { w.anAgent(rt).tell(upward{verb: join, space: w.space.Space}) },
		"leaves":      func(rt *dice) { w.anAgent(rt).leave() },
		"gives up":    w.giveUp,
		"stops":       func(rt *dice) { w.anAgent(rt).pause(true) },
		"reads on":    func(rt *dice) { w.anAgent(rt).pause(false) },
		"turns deaf":  func(rt *dice) { w.anAgent(rt).turn(true) },
		"hears again": func(rt *dice) { w.anAgent(rt).turn(false) },
	}
}

func (w *world) speak(rt *dice) {
	a, b := w.anAgent(rt), w.anAgent(rt)
	n := rt.between(1, 8)
	what := rt.some(n)
	publishes := rt.between(0, 4) == 0
	w.mu.Lock()
	defer w.mu.Unlock()
	to := b.to()
	if publishes {
		to = w.space
		if a.boxes[to.Space] == nil {
			return
		}
	}
	if a == b || !a.began {
		return
	}
	for _, k := range what {
		a.make(to, k)
	}
}

// chatter has every agent of an edge say something to everybody else.
func (w *world) chatter(rt *dice, e *node) {
	what := rt.some(3)
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, a := range w.agents {
		if a.d == nil || a.d.e != e || !a.ready {
			continue
		}
		for _, b := range w.agents {
			for _, k := range what {
				if a != b {
					a.make(b.to(), k)
				}
			}
		}
	}
}

func (a *agent) to() agora.Address { return agora.ToAgent(agora.DefaultTenant, a.id) }

func (w *world) comeBack(rt *dice) {
	a, e := w.anAgent(rt), w.anEdge(rt)
	token, noticed := rt.coin(), rt.millis(0, 400)
	w.say("%s connects to %s, with token: %v", a.id, e.id, token)
	a.connect(e, token, noticed)
}

func (w *world) cutOff(rt *dice) {
	a, noticed := w.anAgent(rt), rt.millis(0, 400)
	w.mu.Lock()
	d := a.d
	w.note("%s is cut off", a.id)
	w.mu.Unlock()
	if d != nil {
		d.drop(noticed)
	}
}

// giveUp has an agent cancel the youngest stream to it.
func (w *world) giveUp(rt *dice) {
	a := w.anAgent(rt)
	w.mu.Lock()
	var p *part
	for uid := range w.arrived {
		q := w.parts[uid]
		if q.lane.to.Agent == a.id && q.stream != "" && (p == nil || q.uid > p.uid) {
			p = q
		}
	}
	w.mu.Unlock()
	if p != nil {
		a.tell(upward{verb: cancel, part: p})
	}
}

func (a *agent) tell(f upward) {
	a.w.mu.Lock()
	d, ready := a.d, a.ready
	a.w.mu.Unlock()
	if ready && d != nil {
		d.tell(f)
	}
}

// leave has the agent leave the space.
func (a *agent) leave() {
	a.w.mu.Lock()
	defer a.w.mu.Unlock()
	if a.d == nil || !a.ready {
		return
	}
	if b := a.boxes[a.w.space.Space]; b != nil {
		b.doubt = true
	}
	a.d.tell(upward{verb: leave, space: a.w.space.Space})
}

func (a *agent) pause(paused bool) {
	a.w.mu.Lock()
	d := a.d
	a.w.mu.Unlock()
	if d != nil {
		d.pause(paused)
	}
}

func (a *agent) turn(deaf bool) {
	a.w.mu.Lock()
	defer a.w.mu.Unlock()
	a.deaf = deaf
}

// settle ends every fault, has everybody come back and say what is left, and waits until all has come; then
// everybody leaves, and the logs are judged.
func (w *world) settle() {
	w.say("all faults end")
	w.mend()
	everybody := func() string {
		for _, a := range w.agents {
			if miss := w.wanting(a); miss != "" {
				return miss
			}
		}
		return w.unwatched()
	}
	w.within(soon, "everybody is back and has everything", everybody)
	w.await("all that scenes have going on has ended", w.scenes.missing)
	if w.failed() {
		return
	}
	w.checkMembers()
	w.within(soon, "everybody is there to leave", everybody) // who says nothing for a minute is closed
	w.say("everybody leaves")
	for _, a := range w.agents {
		a.tell(upward{verb: goodbye})
	}
	w.await("every session is over", func() string {
		left, err := w.living()[0].actor.Directory().All(context.Background())
		if err != nil {
			return err.Error()
		}
		for _, x := range left {
			if slices.ContainsFunc(w.agents, func(a *agent) bool { return a.id == x.ID }) {
				return fmt.Sprintf("%s is still there", x.ID)
			}
		}
		for _, e := range w.all() {
			if e.dead.Load() && !e.gone.Load() {
				return fmt.Sprintf("something of %s may still arrive", e.id)
			}
		}
		if in := w.stillIn(); in != "" {
			return in
		}
		if open := w.unended(); open != "" {
			return open
		}
		return w.unwatched()
	})
	w.collect()
	w.judge()
	w.scenes.judge()
}

// mend ends every fault and lets what is late arrive.
func (w *world) mend() {
	w.log.Mend()
	for _, e := range w.living() {
		e.freeze(false)
		e.log.Refuse(false)
		e.pres.Refuse(false)
	}
	for _, a := range w.agents {
		a.pause(false)
		a.turn(false)
	}
}

// wanting says what an agent waits for; empty when it has all and has said all.
func (w *world) wanting(a *agent) string {
	w.mu.Lock()
	away := a.d == nil
	w.mu.Unlock()
	if away {
		a.connect(w.living()[len(w.notes)%len(w.living())], true, 0)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if !a.ready {
		return fmt.Sprintf("%s is not welcome", a.id)
	}
	for _, l := range a.lanes {
		if l.to.IsSpace() && a.boxes[l.to.Space] == nil {
			continue
		}
		if a.names == plainly && l.next < len(l.made) || a.names != plainly && l.stored < len(l.made) {
			return fmt.Sprintf("%s has %d of %d stored for %s, %d sent", a.id, l.stored, len(l.made), l.to.Name(), l.next)
		}
	}
	for _, b := range a.boxes {
		if b.doubt {
			continue
		}
		if miss := w.missing(a, b); miss != "" {
			return miss
		}
	}
	return ""
}

// unwatched says which log the watcher has not seen to its end.
func (w *world) unwatched() string {
	for to, in := range w.tails {
		last, err := w.watcher.Last(context.Background(), to)
		if err != nil {
			return err.Error()
		}
		w.mu.Lock()
		log := w.logs[to]
		w.mu.Unlock()
		if seen, _ := in.Tail(); last > seen && (len(log) == 0 || log[len(log)-1].Seq < last) {
			return fmt.Sprintf("the watcher is behind at %s", to.Name())
		}
	}
	return ""
}

// collect gives agents that have left nothing more: what came behind their goodbye is not theirs to have.
func (w *world) collect() {
	w.mu.Lock()
	defer w.mu.Unlock()
	for to, log := range w.logs {
		for _, a := range w.agents {
			if b := a.boxes[""]; b.to == to {
				for i := range log {
					if m := &log[i]; m.Seq > b.last {
						b.seen[m.Seq] = true
					}
				}
			}
		}
	}
}

// tally counts what the history saw.
func (w *world) tally() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.seen.Said += len(w.parts) - 1
	w.seen.Arrived += len(w.arrived)
	for _, p := range w.parts[1:] {
		if p.receipt {
			w.seen.Receipted++
		}
	}
	for _, log := range w.logs {
		for i := range log {
			if log[i].Part == agora.Abort {
				w.seen.Aborts++
			}
		}
	}
	for _, a := range w.agents {
		w.seen.Sessions += a.opens
		w.seen.Gaps += len(a.boxes[""].gaps)
	}
}

// checkMembers compares the members of the space with what its agents know.
func (w *world) checkMembers() {
	w.mu.Lock()
	lax := w.lax
	w.mu.Unlock()
	if lax {
		return
	}
	told := time.Time{}
	w.await("the space has its members", func() string {
		if now := time.Now(); now.Sub(told) > lease { // an answer may have been lost, or an edge have refused: it is asked for again
			told = now
			w.repeatMemberships()
		}
		got, err := w.living()[0].store.Spaces.Members(context.Background(), agora.DefaultTenant, w.space.Space)
		if err != nil && !errors.Is(err, presence.ErrNoSpace) {
			return err.Error()
		}
		w.mu.Lock()
		defer w.mu.Unlock()
		for _, a := range w.agents {
			if in, is := slices.Contains(got, a.id), a.boxes[w.space.Space] != nil; in != is {
				return fmt.Sprintf("%s is a member: %v, by its own word: %v", a.id, in, is)
			}
		}
		return ""
	})
}

// repeatMemberships has every agent say whether it is in the space, as it takes it.
func (w *world) repeatMemberships() {
	for _, a := range w.agents {
		w.mu.Lock()
		b, away := a.boxes[w.space.Space], a.d == nil
		in := b != nil && !b.doubt
		w.mu.Unlock()
		switch {
		case away:
			a.connect(w.living()[0], true, 0)
		case in:
			a.tell(upward{verb: join, space: w.space.Space})
		default:
			a.leave()
		}
	}
}

// patience is how long a history waits for what must come.
const patience = 2 * time.Minute

// soon is how long at most anything waits once everything is mended: longer than any election.
const soon = 30 * time.Second

// await polls until nothing is missing.
func (w *world) await(what string, missing func() string) { w.within(patience, what, missing) }

// within polls until nothing is missing, for so long at most.
func (w *world) within(d time.Duration, what string, missing func() string) {
	for end := time.Now().Add(d); !w.failed(); <-time.After(250 * time.Millisecond) {
		miss := missing()
		if miss == "" {
			return
		}
		if time.Now().After(end) {
			if w.plan.Logs {
				b := make([]byte, 4<<20)
				w.say("%s", b[:runtime.Stack(b, true)])
			}
			w.fail("waited in vain until %s: %s", what, miss)
		}
	}
}
