package broker

import "time"

// lanePace is how long a lane waits before each record, so that more gathers. Its lane's lock guards it.
type lanePace struct {
	pause time.Duration // 0 for none
	due   time.Time     // when the next may go; zero when no pause is running
}

// waits reports whether the pause before the next record is not over, and whether it has only begun.
func (p *lanePace) waits() (waits, begun bool) {
	if p.pause == 0 {
		return false, false
	}
	now := time.Now()
	if begun = p.due.IsZero(); begun {
		p.due = now.Add(p.pause)
	}
	if now.Before(p.due) {
		return true, begun
	}
	p.due = time.Time{}
	return false, begun
}

func (p *lanePace) running() bool { return !p.due.IsZero() }
