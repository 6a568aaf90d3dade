package demux

// recent is a set of the names that were added last.
type recent struct {
	in    map[key]uint64 // when each was added last
	order []stamped
	count uint64
}

type stamped struct {
	key
	at uint64
}

// remembered is how many names are kept. The session itself drops what follows of a stream once its cancel is stored.
const remembered = 4096

func (r *recent) has(k key) bool {
	_, ok := r.in[k]
	return ok
}

func (r *recent) add(k key) {
	if r.in == nil {
		r.in = map[key]uint64{}
	}
	r.count++
	r.in[k] = r.count
	r.order = append(r.order, stamped{k, r.count})
	for len(r.order) > remembered {
		if old := r.order[0]; r.in[old.key] == old.at {
			delete(r.in, old.key)
		}
		r.order = r.order[1:]
	}
}

func (r *recent) remove(k key) { delete(r.in, k) }
