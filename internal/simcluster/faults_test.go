package simcluster

import (
	"context"
	"maps"
	"slices"
	"time"

	"github.com/agora-relay/agora/internal/simlog"
)

// after does something a little later, whatever happens meanwhile.
func (w *world) after(d time.Duration, do func()) {
	w.running.Go(func() {
		<-time.After(d)
		do()
	})
}

// anEdge draws one of the edges that live.
func (w *world) anEdge(rt *dice) *node {
	live := w.living()
	return live[rt.between(0, len(live)-1)]
}

func (w *world) anAgent(rt *dice) *agent {
	return w.agents[rt.between(0, len(w.agents)-1)]
}

func (w *world) say(format string, args ...any) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.note(format, args...)
}

// faults are what may happen to the cluster at any moment.
func (w *world) faults() map[string]func(*dice) {
	return map[string]func(*dice){
		"edge killed": func(rt *dice) {
			e, late := w.anEdge(rt), time.Duration(0)
			if rt.between(0, 3) > 0 {
				late = rt.millis(1, 2500)
				hold(e.log, true, false)
				w.chatter(rt, e)
				<-time.After(15 * time.Millisecond)
			}
			w.say("FAULT %s is killed, its writes arrive late by %v", e.id, late)
			w.kill(e, late)
			w.startEdge(rt.millis(-9000, 9000))
		},
		"edge frozen": func(rt *dice) {
			e, d := w.anEdge(rt), rt.millis(50, 2*int(lease.Milliseconds()))
			w.say("FAULT %s is frozen for %v", e.id, d)
			e.freeze(true)
			w.after(d, func() { e.freeze(false) })
		},
		"log cut off": func(rt *dice) {
			e, d := w.anEdge(rt), rt.millis(0, 2*int(lease.Milliseconds()))
			late := rt.coin()
			w.say("FAULT %s can't reach the log for %v, writes arrive late: %v", e.id, d, late)
			cutOff(e.log, late)
			w.after(d, func() { e.log.Refuse(false) })
			w.after(d+rt.millis(0, 500), func() { hold(e.log, false, false) })
		},
		"writes held up": func(rt *dice) {
			e, d := w.anEdge(rt), rt.millis(10, 1500)
			w.say("FAULT what %s writes to the log is held up for %v", e.id, d)
			hold(e.log, true, false)
			w.after(d, func() { hold(e.log, false, false) })
		},
		"answers lost": func(rt *dice) {
			e := w.anEdge(rt)
			w.say("FAULT answers of the log to %s are lost", e.id)
			hold(e.log, false, true)
			w.after(rt.millis(10, 300), e.log.Reset)
		},
		"presence away": func(rt *dice) {
			d, all := rt.millis(10, 2*int(lease.Milliseconds())), rt.coin()
			hit := []*node{w.anEdge(rt)}
			if all {
				hit = w.living()
			}
			w.say("FAULT presence is away for %v, for %d edges", d, len(hit))
			for _, e := range hit {
				e.pres.Cut()
				w.after(d, e.pres.Mend)
			}
		},
	}
}

// kinds are the kinds of streams that the log has.
var kinds = []string{"agent", "space", "call", "book"}

// logFaults are what may happen to the log itself.
func (w *world) logFaults() map[string]func(*dice) {
	return map[string]func(*dice){
		"leader dies": func(rt *dice) {
			kind, dying, away := kinds[rt.between(0, 1)], rt.millis(1, 60), rt.millis(10, 8000)
			after, again := simlog.Silent, rt.coin()
			if rt.coin() {
				after = simlog.Absent
			}
			w.say("FAULT the leader of the %s streams dies for %v, there is none for %v", kind, dying, away)
			w.log.SetLeader(kind, simlog.Dying)
			w.after(dying, func() { w.log.SetLeader(kind, after) })
			w.after(dying+away, func() {
				w.log.SetLeader(kind, simlog.Well)
				if again {
					w.log.Repeat()
				}
			})
		},
		"republished lost": func(rt *dice) {
			percent, d := rt.between(10, 100), rt.millis(5, 2000)
			w.say("FAULT %d of a hundred republished records are lost for %v", percent, d)
			w.log.Lose(percent)
			w.after(d, func() { w.log.Lose(0) })
		},
		"republished late": func(rt *dice) {
			d := rt.millis(1, 1500)
			w.say("FAULT what is republished comes late by %v", d)
			w.log.Delay(true)
			w.after(d, func() { w.log.Delay(false) })
		},
		"republished again": func(*dice) {
			w.say("FAULT what was republished comes again")
			w.log.Repeat()
		},
		"replicas lag": func(rt *dice) {
			kind, d := kinds[rt.between(0, 1)], rt.millis(1, 2500)
			w.say("FAULT replicas of the %s streams lag for %v", kind, d)
			w.log.Lag(kind, true)
			w.after(d, func() { w.log.Lag(kind, false) })
		},
	}
}

// losses are what presence may lose: nothing is promised of claims, rosters and positions after them, but
// all of what the log says, and that streams end unless presence fell back to an older copy.
func (w *world) losses() map[string]func(*dice) {
	var old map[string]copied
	forget := func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.forget()
	}
	return map[string]func(*dice){
		"presence emptied": func(*dice) {
			forget()
			w.say("FAULT presence lost everything")
			if err := w.memory.FlushAll(context.Background()).Err(); err != nil {
				w.fail("presence: %v", err)
			}
		},
		"presence copied": func(*dice) { old = w.dump() },
		"failover to the copy": func(rt *dice) {
			if old == nil {
				return
			}
			w.forgive()
			one := rt.coin()
			w.say("FAULT presence fails over to an older copy; one key only: %v", one)
			w.restore(rt, old, one)
			old = nil
		},
	}
}

// forget notes that presence has lost what it knew. mu is held.
func (w *world) forget() {
	w.lax = true
	for _, a := range w.agents {
		a.lax = true
	}
}

// forgive notes that presence has fallen back to what it knew once.
func (w *world) forgive() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.forget()
	w.endless = true
}

// copied is a key of presence's as it was.
type copied struct {
	value string
	ends  time.Time // zero for never
}

// dump copies what presence holds, but for what lives no longer than a lease: it would be gone by itself.
func (w *world) dump() map[string]copied {
	ctx := context.Background()
	keys, err := w.memory.Keys(ctx, "*").Result()
	if err != nil {
		w.fail("presence: %v", err)
	}
	all := map[string]copied{}
	for _, k := range keys {
		v, err := w.memory.Dump(ctx, k).Result()
		ttl, err2 := w.memory.PTTL(ctx, k).Result()
		switch {
		case err != nil || err2 != nil || ttl > 0 && ttl <= 2*lease: // or it has just gone
		case ttl > 0:
			all[k] = copied{v, time.Now().Add(ttl)}
		default:
			all[k] = copied{value: v}
		}
	}
	return all
}

// restore puts a copy in place of what presence holds, all of it or one key.
func (w *world) restore(rt *dice, old map[string]copied, one bool) {
	keys := slices.Sorted(maps.Keys(old))
	if one && len(keys) > 0 {
		k := rt.between(0, len(keys)-1)
		keys = keys[k : k+1]
	}
	for _, k := range keys {
		w.put(k, old[k])
	}
}

// put has presence know of a key what it knew once.
func (w *world) put(k string, was copied) {
	var ttl time.Duration
	if !was.ends.IsZero() {
		ttl = max(time.Millisecond, time.Until(was.ends))
	}
	if err := w.memory.RestoreReplace(context.Background(), k, ttl, was.value).Err(); err != nil {
		w.fail("presence: %v", err)
	}
}
