package carrier

import (
	"context"
	"sync"
	"time"

	"github.com/agora-relay/agora"
	"github.com/agora-relay/agora/edge/tools"
	"github.com/agora-relay/agora/presence"
)

// lately is what was known of callers of tools a moment ago, for doors that call nodes of a moment ago without a look
// at presence. The zero value is ready to use.
type lately struct {
	mu  sync.Mutex // guards the field below
	all map[agora.Address]caller
}

// caller is a caller's card and its open tasks.
type caller struct {
	card agora.Agent
	open []presence.Execute
	at   time.Time
}

const (
	latelyFor  = 250 * time.Millisecond // how long that counts; a task that is given at this edge counts at once
	latelyAway = time.Minute            // how long while presence can't be asked
	latelyMost = 10000
)

// CheckToolLately is [Carriers.CheckTool] for a node that is called directly: it believes for a moment what it knows of
// the caller, and for a minute while presence can't be asked.
func (cs *Carriers) CheckToolLately(ctx context.Context, c Call, t Tool) error {
	by, err := cs.lately.find(ctx, cs.tools, c)
	if err != nil {
		return err
	}
	q := cs.toolCall(c, t, by.card)
	q.Open, q.Known = by.open, true
	return cs.tools.CheckTool(ctx, q)
}

// find returns what is known of the caller, or is now found.
func (l *lately) find(ctx context.Context, g *tools.Guard, c Call) (caller, error) {
	at := agora.ToAgent(c.Actor.Principal().Tenant, c.As)
	l.mu.Lock()
	was, known := l.all[at]
	l.mu.Unlock()
	if known && time.Since(was.at) < latelyFor {
		return was, nil
	}
	now, err := look(ctx, g, c)
	if err != nil {
		if known && time.Since(was.at) < latelyAway && agora.AsError(err).Code == agora.Unavailable {
			return was, nil
		}
		return now, err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.all == nil || len(l.all) >= latelyMost {
		l.all = map[agora.Address]caller{}
	}
	l.all[at] = now
	return now, nil
}

// look asks presence for the caller's card, and at the same time for its tasks.
func look(ctx context.Context, g *tools.Guard, c Call) (now caller, err error) {
	now.at = time.Now()
	var failed error
	var tasks sync.WaitGroup
	tasks.Go(func() { now.open, failed = g.Tasks(ctx, c.Actor.Principal().Tenant, c.As) })
	now.card, err = known(c.Actor.Directory().Own(ctx, c.As))
	tasks.Wait()
	if err == nil {
		err = failed
	}
	now.card.ID = c.As
	return now, err
}

// forget has what is known of an agent be looked up again: it was given a task.
func (l *lately) forget(at agora.Address) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.all, at)
}
