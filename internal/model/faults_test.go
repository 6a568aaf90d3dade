package model

import (
	"context"
	"maps"
	"slices"
	"time"

	"pgregory.net/rapid"
)

// after does something a little later, whatever happens meanwhile.
func (w *world) after(d time.Duration, do func()) {
	w.running.Go(func() {
		<-time.After(d)
		do()
	})
}

func millis(rt *rapid.T, least, most int, label string) time.Duration {
	return time.Duration(rapid.IntRange(least, most).Draw(rt, label)) * time.Millisecond
}

// anEdge draws one of the edges that live.
func (w *world) anEdge(rt *rapid.T) *node {
	live := w.living()
	return live[rapid.IntRange(0, len(live)-1).Draw(rt, "edge")]
}

func (w *world) anAgent(rt *rapid.T) *agent {
	return w.agents[rapid.IntRange(0, len(w.agents)-1).Draw(rt, "agent")]
}

func (w *world) say(format string, args ...any) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.note(format, args...)
}

// faults are what may happen to the cluster at any moment.
func (w *world) faults() map[string]func(*rapid.T) {
	return map[string]func(*rapid.T){
		"edge killed": func(rt *rapid.T) {
			e, late := w.anEdge(rt), time.Duration(0)
			if rapid.IntRange(0, 3).Draw(rt, "writes arrive late") > 0 {
				late = millis(rt, 1, 2500, "by")
				hold(e.log, true, false)
				w.chatter(rt, e)
				<-time.After(15 * time.Millisecond)
			}
			w.say("FAULT %s is killed, its writes arrive late by %v", e.id, late)
			w.kill(e, late)
			w.startEdge(millis(rt, -9000, 9000, "clock off"))
		},
		"edge frozen": func(rt *rapid.T) {
			e, d := w.anEdge(rt), millis(rt, 50, 2*int(lease.Milliseconds()), "for")
			w.say("FAULT %s is frozen for %v", e.id, d)
			e.freeze(true)
			w.after(d, func() { e.freeze(false) })
		},
		"log cut off": func(rt *rapid.T) {
			e, d := w.anEdge(rt), millis(rt, 0, 2*int(lease.Milliseconds()), "for")
			late := rapid.Bool().Draw(rt, "writes arrive late")
			w.say("FAULT %s can't reach the log for %v, writes arrive late: %v", e.id, d, late)
			cutOff(e.log, late)
			w.after(d, func() { e.log.Refuse(false) })
			w.after(d+millis(rt, 0, 500, "late by"), func() { hold(e.log, false, false) })
		},
		"writes held up": func(rt *rapid.T) {
			e, d := w.anEdge(rt), millis(rt, 10, 1500, "for")
			w.say("FAULT what %s writes to the log is held up for %v", e.id, d)
			hold(e.log, true, false)
			w.after(d, func() { hold(e.log, false, false) })
		},
		"answers lost": func(rt *rapid.T) {
			e := w.anEdge(rt)
			w.say("FAULT answers of the log to %s are lost", e.id)
			hold(e.log, false, true)
			w.after(millis(rt, 10, 300, "after"), e.log.Reset)
		},
		"presence away": func(rt *rapid.T) {
			d, all := millis(rt, 10, 2*int(lease.Milliseconds()), "for"), rapid.Bool().Draw(rt, "for all")
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
		"log server gone": func(rt *rapid.T) {
			k := rapid.IntRange(0, w.nodes-1).Draw(rt, "node")
			if w.nodes > 1 && rapid.Bool().Draw(rt, "steps down") {
				w.stepDown(rapid.IntRange(0, 3).Draw(rt, "stream"))
				return
			}
			w.say("FAULT log server %d is gone", k)
			w.log.StopNode(k)
			<-time.After(millis(rt, 0, 300, "for"))
			if err := w.log.StartNode(k); err != nil {
				w.t.Error(err)
			}
		},
	}
}

// stepDown has a stream of the log elect another leader.
func (w *world) stepDown(k int) {
	stream := w.watcher.Streams()[k]
	w.say("FAULT the leader of %s steps down", stream)
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	if err := w.log.StepDown(ctx, stream); err != nil {
		w.say("it does not: %v", err)
	}
}

// losses are what presence may lose: nothing is promised of claims, rosters and positions after them, but
// all of what the log says, and that streams end unless presence fell back to an older copy.
func (w *world) losses() map[string]func(*rapid.T) {
	var old map[string]copied
	forget := func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.lax = true
		for _, a := range w.agents {
			a.lax = true
		}
	}
	return map[string]func(*rapid.T){
		"presence emptied": func(*rapid.T) {
			forget()
			w.say("FAULT presence lost everything")
			if err := w.memory.FlushAll(context.Background()).Err(); err != nil {
				w.t.Error(err)
			}
		},
		"presence copied": func(*rapid.T) { old = w.dump() },
		"failover to the copy": func(rt *rapid.T) {
			if old == nil {
				return
			}
			forget()
			w.mu.Lock()
			w.endless = true
			w.mu.Unlock()
			one := rapid.Bool().Draw(rt, "one key only")
			w.say("FAULT presence fails over to an older copy; one key only: %v", one)
			w.restore(rt, old, one)
			old = nil
		},
	}
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
		w.t.Error(err)
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
func (w *world) restore(rt *rapid.T, old map[string]copied, one bool) {
	ctx := context.Background()
	keys := slices.Sorted(maps.Keys(old))
	if one && len(keys) > 0 {
		k := rapid.IntRange(0, len(keys)-1).Draw(rt, "key")
		keys = keys[k : k+1]
	}
	for _, k := range keys {
		var ttl time.Duration
		if end := old[k].ends; !end.IsZero() {
			ttl = max(time.Millisecond, time.Until(end))
		}
		if err := w.memory.RestoreReplace(ctx, k, ttl, old[k].value).Err(); err != nil {
			w.t.Error(err)
		}
	}
}
