package approval

import (
	"context"
	"math/rand/v2"
	"time"
)

// Mailer tells askers of decisions that nobody waits for.
type Mailer interface {
	// Awaited reports whether somebody waits for a decision, at whatever edge. It may take a round trip.
	Awaited(ctx context.Context, a *Approval) bool
	// DeliverDecision mails a decision to its asker: once, however many edges do so within the log's duplicate window. Its error has it be tried again.
	DeliverDecision(ctx context.Context, a *Approval) error
}

// MailBy has decisions be mailed to askers that do not wait for them. Without it none are. It is called before the first call of Ask or Decide.
func (a *Approvals) MailBy(m Mailer) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.mailer = m
}

// How soon decisions are mailed: by the edge that has decided at once, by the others in case that edge has died meanwhile.
const (
	mailLater = 2 * time.Second  // after a decision of another edge, at the soonest; at the latest twice that
	mailRetry = time.Second      // after a failure
	mailUntil = 60 * time.Second // after the decision: then the log may not know any more that it was mailed
	mailTime  = 5 * time.Second  // for one try
	mostMails = 10_000           // waiting; the oldest are left to other edges
)

// mail is a decision that is to be mailed.
type mail struct {
	at       time.Time // by this machine's clock
	decision *Approval
}

// mailSoon has a decision be mailed where nobody waits for it, after a while. mu is held.
func (a *Approvals) mailSoon(d *Approval, after time.Duration) {
	if !d.Mail || a.mailer == nil || a.cfg.Now().Sub(d.Decided) > mailUntil {
		return
	}
	if len(a.mails) >= mostMails {
		a.mails = a.mails[1:]
	}
	a.mails = append(a.mails, mail{time.Now().Add(after), d})
	select {
	case a.mailed <- struct{}{}:
	default:
	}
}

// later is when an edge mails what another one has decided.
func later() time.Duration { return mailLater + rand.N(mailLater) }

// deliver mails decisions, until Close.
func (a *Approvals) deliver() {
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	for {
		timer.Reset(a.deliverDue())
		select {
		case <-a.mailed:
		case <-timer.C:
		case <-a.ctx.Done():
			return
		}
	}
}

// deliverDue mails what is due, and returns when there is more.
func (a *Approvals) deliverDue() time.Duration {
	for {
		m, wait := a.nextMail()
		if m == nil {
			return wait
		}
		ctx, cancel := context.WithTimeout(a.ctx, mailTime)
		err := a.mailer.DeliverDecision(ctx, m.decision)
		cancel()
		if err != nil && a.ctx.Err() == nil {
			a.cfg.Log.Debug("a decision could not be mailed", "err", err)
			a.mu.Lock()
			a.mailSoon(m.decision, mailRetry)
			a.mu.Unlock()
		}
	}
}

// nextMail takes the first mail that is due out of those that wait; nil where none is, and how long until one is.
func (a *Approvals) nextMail() (*mail, time.Duration) {
	a.mu.Lock()
	defer a.mu.Unlock()
	wait, now := time.Hour, time.Now()
	for i := range a.mails {
		m := a.mails[i]
		if left := m.at.Sub(now); left > 0 {
			wait = min(wait, left)
			continue
		}
		a.mails = append(a.mails[:i], a.mails[i+1:]...)
		return &m, 0
	}
	return nil, wait
}
