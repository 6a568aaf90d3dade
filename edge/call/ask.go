package call

import (
	"cmp"
	"context"
	"crypto/rand"
	"sync"
	"time"

	"github.com/agora-relay/agora"
	"github.com/agora-relay/agora/broker"
	"github.com/agora-relay/agora/internal/guard"
	"github.com/agora-relay/agora/presence"
)

// ask writes the call into presence and the request into the log, once the box is listened to.
func (a *Answer) ask(ctx context.Context, q Request) error {
	if err := a.r.cfg.Reach(ctx, a.callee()); err != nil {
		return err
	}
	listens, begun := a.listen(ctx)
	if !begun {
		return errShut
	}
	defer func() { <-listens }()
	complete := q.completing(ctx)
	defer complete()
	state, asked, err := a.r.cfg.Presence.Calls.Open(ctx, a.r.cfg.Holder, a.id, a.call, a.r.cfg.MaxAge, a.r.cfg.Doubt)
	if err != nil {
		return err
	}
	if asked == presence.Asked {
		a.hears(requestStored)
	}
	<-listens
	a.state = state
	switch state {
	case presence.CallOther:
		a.hears(requestForgotten)
		return agora.Errorf(agora.InvalidRequest, "the name of this call stands for another request")
	case presence.CallOver:
		a.hears(requestForgotten)
		return a.whyOver(ctx)
	case presence.CallAnswered:
		a.r.count.Made.Add(1)
		return nil
	}
	again := false
	if asked == presence.Doubtful {
		asked, again, err = a.lookFor(ctx)
	}
	if err == nil && (asked == presence.Unasked || !guard.Once) {
		if q.Message, err = complete(); err == nil {
			q.Message.Again = again
			err = a.store(ctx, q)
		}
		if err != nil && !a.call.Named && agora.AsError(err).Code != agora.Unavailable { // else it may be stored, of a call with a name by another edge
			a.hears(requestRefused)
		}
	}
	if err == nil {
		a.r.count.Made.Add(1)
	}
	return err
}

// lookFor looks in the mailbox of who is asked for a request of which nobody knows whether it was stored: what is not
// there now was stored no longer ago than looking took, if at all, so that the log knows it by its key. again tells
// that it may have been there, as the mailbox does not reach back that far.
func (a *Answer) lookFor(ctx context.Context) (asked presence.Asking, again bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, askTime)
	defer cancel()
	b := a.r.cfg.Broker
	f, err := b.Find(ctx, broker.Search{To: a.callee(), Most: 1, Match: func(m *agora.Message) bool { return m.Kind == agora.Request && m.Meta.Call == a.call.Box }})
	switch {
	case err != nil:
		return asked, false, err
	case len(f.Stored) > 0:
		a.hears(requestStored)
		return presence.Asked, false, a.r.cfg.Presence.Calls.Asked(ctx, a.call)
	case !f.Whole:
		return asked, false, agora.Errorf(agora.Unavailable, "the mailbox of the addressee can't be read now")
	}
	return presence.Unasked, int64(f.Records) >= a.r.cfg.MaxRecords, a.r.cfg.Presence.Calls.AskAgain(ctx, a.call)
}

// whyOver returns why a call was ended that is made again: its box says so, as soon as the one who has ended it has
// told.
func (a *Answer) whyOver(ctx context.Context) error {
	soon, cancel := context.WithTimeout(ctx, tellTime)
	defer cancel()
	for msgs := a.msgs; ; {
		for i := range msgs {
			if m := &msgs[i]; m.Kind == agora.Control && m.Part == agora.Abort && m.From == "" {
				return aborted(m)
			}
		}
		var err error
		if msgs, err = a.inbox.Load().Next(soon, pullBytes); err == nil && len(msgs) > 0 {
			continue
		}
		select {
		case <-a.wake:
		case <-soon.Done():
			return cmp.Or(ctx.Err(), error(errGivenUp))
		}
	}
}

// tellTime is how long who has ended a call may take to say so in its box.
const tellTime = 2 * time.Second

var errGivenUp = agora.Errorf(agora.StreamAborted, "the call of this name was given up before it was answered")

// listen begins to listen to the box, and reads what it has, behind: the channel is closed once that is done. It
// returns false where the Registry is over.
func (a *Answer) listen(ctx context.Context) (<-chan struct{}, bool) {
	inbox := a.r.cfg.Broker.Listen(a.address(), broker.From{}, a.woken)
	a.inbox.Store(inbox)
	a.hears(requestOpens)
	listens := make(chan struct{})
	return listens, a.r.background(func() { // an empty box is live once its stream's leader was asked, which takes as long as presence does
		defer close(listens)
		msgs, _ := inbox.Next(ctx, pullBytes) // what fails here is tried again by Next
		a.keep(msgs)
	})
}

// completing begins to complete the message, and returns what waits until it is.
func (q *Request) completing(ctx context.Context) func() (agora.Message, error) {
	m := q.Message
	if q.Complete == nil {
		return func() (agora.Message, error) { return m, nil }
	}
	var work sync.WaitGroup
	var err error
	work.Go(func() { err = q.Complete(ctx, &m) })
	return func() (agora.Message, error) {
		work.Wait()
		return m, err
	}
}

// store stores the request: once, however many edges do so at a time.
func (a *Answer) store(ctx context.Context, q Request) error {
	m := q.Message
	m.Kind, m.Part, m.ID, m.Meta.Call = agora.Request, agora.Whole, a.call.Request, a.call.Box
	if !m.Meta.Deadline.IsZero() && !a.r.cfg.Broker.Now().Before(m.Meta.Deadline) {
		return errLate
	}
	ctx, cancel := context.WithTimeout(ctx, askTime)
	defer cancel()
	if err := a.say(ctx, m); err != nil {
		return err
	}
	a.hears(requestStored)
	a.r.cfg.Wrote(a.callee())
	if a.call.Named {
		return a.r.cfg.Presence.Calls.Asked(ctx, a.call)
	}
	return nil
}

// say stores what begins the request, or is all of it.
func (a *Answer) say(ctx context.Context, m agora.Message) error {
	if s := a.stream; s != nil {
		m.Part, m.Stream, m.Indexed, m.Meta.Request, s.next = agora.Start, s.name, true, s.name, 1
		return s.put(ctx, m)
	}
	_, err := a.r.cfg.Broker.PublishFor(ctx, a.owner.Principal, a.key(), m)
	return err
}

// key is the request's own in the log: the one who makes the call stores it under this one.
func (a *Answer) key() string {
	if !guard.Once {
		return rand.Text()
	}
	return "call/" + a.call.Box
}

var errLate = agora.Errorf(agora.Timeout, "the deadline has passed")
