package approval

import (
	"context"
	"log/slog"
	"math/rand/v2"
	"sync"
	"time"
)

// Mailer tells askers of decisions that nobody waits for.
type Mailer interface {
	// Awaited reports whether somebody waits for a decision, at whatever edge. It may take a round trip.
	Awaited(ctx context.Context, a *Approval) bool
	// DeliverDecision mails a decision to its asker: once, however many edges do so within the log's duplicate window.
	// Its error has it be tried again.
	DeliverDecision(ctx context.Context, a *Approval) error
}

// MailBy has decisions be mailed to askers that do not wait for them. Without it none are. It is called before the
// first call of Ask or Decide.
func (a *Approvals) MailBy(m Mailer) { a.outbox.mailBy(m) }

// How soon decisions are mailed: by the edge that has decided at once, by the others in case that edge has died
// meanwhile.
const (
	mailLater = 2 * time.Second  // after a decision of another edge, at the soonest; at the latest twice that
	mailRetry = time.Second      // after a failure
	mailUntil = 60 * time.Second // after the decision: then the log may not know any more that it was mailed
	mailTime  = 5 * time.Second  // for one try
	mostMails = 10_000           // waiting; the oldest are left to other edges
)

// later is when an edge mails what another one has decided.
func later() time.Duration { return mailLater + rand.N(mailLater) }

// mail is a decision that is to be mailed.
type mail struct {
	at       time.Time // by this machine's clock
	decision *Approval
}

// outbox mails decisions that nobody waits for. Its methods may be called at the same time.
type outbox struct {
	now   func() time.Time // the log's clock
	log   *slog.Logger
	added chan struct{} // holds one token when there is one more

	mu     sync.Mutex // guards the fields below
	mailer Mailer     // nil where nothing is mailed
	mails  []mail     // to be sent
}

func newOutbox(now func() time.Time, log *slog.Logger) *outbox {
	return &outbox{now: now, log: log, added: make(chan struct{}, 1)}
}

func (o *outbox) mailBy(m Mailer) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.mailer = m
}

// awaited reports whether somebody waits for the decision of a, or nothing is mailed.
func (o *outbox) awaited(ctx context.Context, a *Approval) bool {
	o.mu.Lock()
	m := o.mailer
	o.mu.Unlock()
	return m == nil || m.Awaited(ctx, a)
}

// add has a decision be mailed after a while, where nobody waits for it.
func (o *outbox) add(d *Approval, after time.Duration) {
	if !d.Mail {
		return
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.mailer == nil || o.now().Sub(d.Decided) > mailUntil {
		return
	}
	if len(o.mails) >= mostMails {
		o.mails = o.mails[1:]
	}
	o.mails = append(o.mails, mail{time.Now().Add(after), d})
	select {
	case o.added <- struct{}{}:
	default:
	}
}

// deliver mails decisions, until ctx is over.
func (o *outbox) deliver(ctx context.Context) {
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	for {
		timer.Reset(o.deliverDue(ctx))
		select {
		case <-o.added:
		case <-timer.C:
		case <-ctx.Done():
			return
		}
	}
}

// deliverDue mails what is due, and returns when there is more.
func (o *outbox) deliverDue(ctx context.Context) time.Duration {
	for {
		mailer, m, wait := o.next()
		if m == nil {
			return wait
		}
		try, cancel := context.WithTimeout(ctx, mailTime)
		err := mailer.DeliverDecision(try, m.decision)
		cancel()
		if err != nil && ctx.Err() == nil {
			o.log.Debug("a decision could not be mailed", "err", err)
			o.add(m.decision, mailRetry)
		}
	}
}

// next takes the first mail that is due out of those that wait; nil where none is, and how long until one is.
func (o *outbox) next() (Mailer, *mail, time.Duration) {
	o.mu.Lock()
	defer o.mu.Unlock()
	wait, now := time.Hour, time.Now()
	for i := range o.mails {
		m := o.mails[i]
		if left := m.at.Sub(now); left > 0 {
			wait = min(wait, left)
			continue
		}
		o.mails = append(o.mails[:i], o.mails[i+1:]...)
		return o.mailer, &m, 0
	}
	return nil, nil, wait
}
