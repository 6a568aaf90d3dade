package pause

import "time"

// RemindEvery is the time between two reminders.
const RemindEvery = 10 * time.Second

// Reminder tells who waits when to say again what is missing. The zero value is ready to use, by one goroutine.
type Reminder struct{ next time.Time }

// Due reports whether it is time: RemindEvery after its first call, and after each time that it was.
func (r *Reminder) Due() bool {
	now := time.Now()
	due := !r.next.IsZero() && !now.Before(r.next)
	if due || r.next.IsZero() {
		r.next = now.Add(RemindEvery)
	}
	return due
}
