package directory

import "slices"

// index finds the entries of a replica by what can be said of them. An entry has a slot; a posting is a slot, and in
// the last bits the place where the word stands in that entry. Most words are one agent's alone, which takes little.
type index struct {
	slots []*entry
	free  []uint32          // slots that are nobody's
	one   map[term]uint32   // the posting of what one entry has
	many  map[term][]uint32 // the postings of what several have, or had, in order of their slots
}

const placeBits = 3

// add enters an entry and gives it a slot.
func (x *index) add(e *entry, terms []term) {
	if n := len(x.free); n > 0 {
		e.slot, x.free = x.free[n-1], x.free[:n-1]
		x.slots[e.slot] = e
	} else {
		e.slot = uint32(len(x.slots))
		x.slots = append(x.slots, e)
	}
	for _, t := range terms {
		x.post(t&^places, e.slot<<placeBits|uint32(t&places))
	}
}

func (x *index) post(h term, p uint32) {
	if x.one == nil {
		x.one, x.many = map[term]uint32{}, map[term][]uint32{}
	}
	all, several := x.many[h]
	other, single := x.one[h]
	switch {
	case several:
		i, _ := slices.BinarySearch(all, p)
		x.many[h] = slices.Insert(all, i, p)
	case single:
		delete(x.one, h)
		x.many[h] = []uint32{min(other, p), max(other, p)}
	default:
		x.one[h] = p
	}
}

// remove takes an entry out. terms are those that it was added with.
func (x *index) remove(e *entry, terms []term) {
	for _, t := range terms {
		h, p := t&^places, e.slot<<placeBits|uint32(t&places)
		all, several := x.many[h]
		if !several {
			delete(x.one, h)
			continue
		}
		if i, ok := slices.BinarySearch(all, p); ok {
			all = slices.Delete(all, i, i+1)
		}
		if x.many[h] = all; len(all) == 0 {
			delete(x.many, h)
		}
	}
	x.slots[e.slot] = nil
	x.free = append(x.free, e.slot)
}

// often returns how many entries have what a hash stands for.
func (x *index) often(h term) int {
	if _, single := x.one[h]; single {
		return 1
	}
	return len(x.many[h])
}

// count adds to the score of each entry, by its slot, what having it is worth where it stands, and returns how many
// have it.
func (x *index) count(scores []float64, h term, worth func(place term) float64) int {
	if p, single := x.one[h]; single {
		scores[p>>placeBits] += worth(term(p) & places)
		return 1
	}
	var worths [places + 1]float64
	for place := range worths {
		worths[place] = worth(term(place))
	}
	all := x.many[h]
	for _, p := range all {
		scores[p>>placeBits] += worths[p&places]
	}
	return len(all)
}
