package load

import "time"

// Servers are the processes of a cluster that are measured.
type Servers struct {
	PIDs []int // on this machine
}

// Look is what processes have taken so far, and hold now.
type Look struct {
	CPU  time.Duration // user and system
	RSS  int64         // bytes
	Heap int64         // bytes; 0 if nobody told
}

// Usage looks at the servers; nil if they can't be measured, or there are none.
func (s Servers) Usage() *Look {
	if len(s.PIDs) == 0 {
		return nil
	}
	var sum Look
	for _, pid := range s.PIDs {
		l, err := lookAt(pid)
		if err != nil {
			return nil
		}
		sum.CPU += l.CPU
		sum.RSS += l.RSS
	}
	return &sum
}
