package agoratest

import (
	"maps"
	"slices"
	"time"
)

// Recovery is what the agents of a talk noticed since Mark.
type Recovery struct {
	Lost     int            // connections that went
	Back     time.Duration  // the longest that an agent took to register again, from its first try
	CaughtUp time.Duration  // the longest, from its first try, until it had all that was stored for it when it registered
	Pause    time.Duration  // the longest between two deliveries from one sender to one receiver
	Codes    map[string]int // what they were told: errors by their code, and how their connections ended
}

// comeback is how a talker comes back when it has lost its connection.
type comeback struct {
	seen  Recovery
	tried time.Time         // when it first tried to; zero while it is there
	since time.Time         // when it first tried to the last time
	owed  map[string]uint64 // what it has not caught up with since, by sender
}

// Mark begins the time of which Recovery tells.
func (t *Talk) Mark() {
	now := time.Now()
	for _, k := range t.talkers {
		k.mu.Lock()
		k.back.seen = Recovery{Codes: map[string]int{}}
		for _, in := range k.in {
			in.at, in.pause = now, 0
		}
		k.mu.Unlock()
	}
}

// Recovery returns what the agents noticed since Mark, of each other and of the cluster, but for those named.
func (t *Talk) Recovery(but ...int) Recovery {
	all := Recovery{Codes: map[string]int{}}
	for i, k := range t.talkers {
		if slices.Contains(but, i) {
			continue
		}
		k.mu.Lock()
		all.Lost += k.back.seen.Lost
		all.Back = max(all.Back, k.back.seen.Back)
		all.CaughtUp = max(all.CaughtUp, k.back.seen.CaughtUp)
		for _, in := range k.in {
			if !slices.Contains(but, in.from) {
				all.Pause = max(all.Pause, in.pause)
			}
		}
		for code, n := range k.back.seen.Codes {
			all.Codes[code] += n
		}
		k.mu.Unlock()
	}
	return all
}

// stored returns how much is stored for an agent now, by sender.
func (k *talker) stored() map[string]uint64 {
	stored := map[string]uint64{}
	for from, in := range k.in {
		stored[from] = in.track.Line().Settled()
	}
	return stored
}

// caughtUp notes when the last of what was owed to an agent at its return has come. The caller holds mu.
func (k *talker) caughtUp() {
	if k.back.owed == nil {
		return
	}
	maps.DeleteFunc(k.back.owed, func(from string, n uint64) bool { return k.in[from].track.Last() >= n })
	if len(k.back.owed) == 0 {
		k.back.owed = nil
		k.back.seen.CaughtUp = max(k.back.seen.CaughtUp, time.Since(k.back.since))
	}
}
