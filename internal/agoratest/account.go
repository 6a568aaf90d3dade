package agoratest

import (
	"fmt"
	"slices"
	"strings"
)

// counts returns how far everybody is, by what is sent and by what is got.
func (t *Talk) counts() (stored, got map[string]uint64) {
	stored = map[string]uint64{}
	for _, k := range t.talkers {
		k.mu.Lock()
		for _, o := range k.out {
			stored[k.id+" to "+o.to] = o.stored
		}
		k.mu.Unlock()
	}
	return stored, t.arrived()
}

// lane names what one agent gets from another: directly, or through the space.
func lane(from, to string, space bool) string {
	if space {
		return to + " from " + from + " in the space"
	}
	return to + " from " + from
}

// made returns the last number that was handed out, for every lane and receiver; what was refused for good at the
// end does not count.
func (t *Talk) made() map[string]uint64 {
	made := map[string]uint64{}
	for _, k := range t.talkers {
		k.mu.Lock()
		for _, o := range k.out {
			last := o.made
			for o.failed[last] || inStream(last) && o.broken[streamOf(last)] { // it may have been given up
				last--
			}
			t.receivers(k.id, o.to, func(name string) { made[name] = last })
		}
		k.mu.Unlock()
	}
	return made
}

// receivers names the lane of an addressee, or that of every member of the space.
func (t *Talk) receivers(from, to string, lanes func(string)) {
	if to != "" {
		lanes(lane(from, to, false))
		return
	}
	for _, id := range t.ids {
		lanes(lane(from, id, true))
	}
}

// arrived returns the last number that came, for every lane.
func (t *Talk) arrived() map[string]uint64 {
	got := map[string]uint64{}
	for lane := range t.made() {
		got[lane] = 0
	}
	for _, k := range t.talkers {
		k.mu.Lock()
		for from, in := range k.in {
			id, space := strings.CutPrefix(from, "#")
			got[lane(id, k.id, space)] = in.last
		}
		k.mu.Unlock()
	}
	return got
}

// without returns the lanes that neither begin nor end at the agents named.
func (t *Talk) without(lanes map[string]uint64, but []int) map[string]uint64 {
	for _, i := range but {
		for _, id := range t.ids {
			for _, space := range []bool{false, true} {
				delete(lanes, lane(t.ids[i], id, space))
				delete(lanes, lane(id, t.ids[i], space))
			}
		}
	}
	return lanes
}

// lacking says what is not n further than before.
func lacking(now, before map[string]uint64, n uint64) (behind []string) {
	for what, b := range before {
		if now[what] < b+n {
			behind = append(behind, fmt.Sprintf("%s: %d, want %d", what, now[what], b+n))
		}
	}
	slices.Sort(behind)
	return behind
}

// refusals returns the last error that each sender got about each addressee.
func (t *Talk) refusals() (all []string) {
	for _, k := range t.talkers {
		k.mu.Lock()
		for _, o := range k.out {
			if o.refusal != "" && o.stored < o.made {
				all = append(all, fmt.Sprintf("%s to %q, stored %d, sent %d of %d: %s", k.id, o.to, o.stored, o.next-1, o.made, o.refusal))
			}
		}
		k.mu.Unlock()
	}
	return all
}

// missing says what was sent and is not there.
func (t *Talk) missing() (behind []string) {
	for _, k := range t.talkers {
		k.mu.Lock()
		for _, o := range k.out {
			if o.stored != o.made {
				behind = append(behind, fmt.Sprintf("%s has %d of %d stored for %q", k.id, o.stored, o.made, o.to))
			}
		}
		k.mu.Unlock()
	}
	return append(behind, lacking(t.arrived(), t.made(), 0)...)
}

// account compares what was passed over with what was refused, or given up before the eyes of both ends.
func (t *Talk) account() (total, refused int) {
	t.t.Helper()
	sent := map[string]*outgoing{}
	for _, k := range t.talkers {
		k.mu.Lock()
		defer k.mu.Unlock()
		for _, o := range k.out {
			t.receivers(k.id, o.to, func(name string) { sent[name] = o })
			total += int(o.made)
		}
	}
	for _, k := range t.talkers {
		for from, in := range k.in {
			id, space := strings.CutPrefix(from, "#")
			o := sent[lane(id, k.id, space)]
			for _, n := range in.holes {
				stream := streamOf(n)
				if !o.failed[n] && !(inStream(n) && in.aborted[stream] && o.broken[stream]) {
					t.t.Errorf("%s never got number %d of %s, which was not refused", k.id, n, from)
				}
			}
			refused += len(in.holes)
		}
	}
	return total, refused
}
