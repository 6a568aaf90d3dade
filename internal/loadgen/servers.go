package loadgen

import (
	"crypto/tls"
	"time"
)

// Watched is servers whose use of the machine is measured.
type Watched interface {
	// Usage looks at them; nil if they can't be measured, or there are none.
	Usage() *Look
}

// Servers are the processes of a cluster that are measured.
type Servers struct {
	PIDs   []int       // on this machine; of these all is measured, by the kernel, but the heap
	Admins []string    // addresses of admin ports, one a process: its heap, and where there are no PIDs the rest, too
	TLS    *tls.Config // for https; nil: the system's
}

// Look is what processes have taken so far, and hold now.
type Look struct {
	CPU  time.Duration // user and system
	RSS  int64         // bytes
	Heap int64         // bytes of heap and stacks in use; 0 if nobody told

	Edges time.Duration // CPU of those among them that agents connect to; 0 if nobody told them apart, like the next
	Held  int64         // bytes that these have for themselves: pages of files left out
}

// Usage implements Watched; nil if they can't be measured, or there are none. It blocks for some
// seconds at most.
func (s Servers) Usage() *Look {
	if len(s.PIDs) == 0 && len(s.Admins) == 0 {
		return nil
	}
	told, ok := sum(s.Admins, s.ask)
	if len(s.PIDs) == 0 {
		if !ok {
			return nil
		}
		return &told
	}
	seen, ok := sum(s.PIDs, lookAt)
	if !ok {
		return nil
	}
	seen.Heap = told.Heap
	return &seen
}

// sum adds up looks at all; ok is false if one can't be had.
func sum[T any](all []T, look func(T) (Look, error)) (total Look, ok bool) {
	for _, v := range all {
		l, err := look(v)
		if err != nil {
			return Look{}, false
		}
		total.CPU += l.CPU
		total.RSS += l.RSS
		total.Heap += l.Heap
	}
	return total, true
}
