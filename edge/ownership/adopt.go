package ownership

import (
	"context"
	"errors"
	"maps"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/agora-relay/agora"
	"github.com/agora-relay/agora/internal/pause"
	"github.com/agora-relay/agora/presence"
)

// adoptions finds sessions without an edge whose agents edges dial, and has this edge go on with them. Of several edges
// the first one that claims a session has it, as the others find another epoch.
type adoptions struct {
	cfg       *Config
	lease     *Lease
	handovers *handovers
	silent    map[presence.Holder]*absence // holders that have left out renewals; the loop's own, like the next
	gone      map[presence.Holder]struct{} // of them those that are known to be gone

	mu     sync.Mutex                 // guards the fields below
	busy   map[agora.Address]struct{} // whose adoption is under way
	failed map[agora.Address]setback
}

// setback keeps an edge that can't reach an agent from dialling it again soon.
type setback struct {
	epoch uint64
	wait  time.Duration
	until time.Time
}

// How long an edge waits after it could not dial, at first and at most. Others try meanwhile.
const (
	firstSetback = 500 * time.Millisecond
	mostSetback  = 5 * time.Second
)

// ErrAdopted is the error of who comes second.
var ErrAdopted = agora.Errorf(agora.AgentExists, "another edge goes on with this session, or it is over")

const (
	adoptBatch    = 64              // orphans that are looked at in one round
	mostAdoptions = 32              // under way at one edge
	keptFor       = 3 * time.Second // so long others leave an orphan alone that an edge dials
)

// loop looks for sessions without an edge, until the edge is closed.
func (d *adoptions) loop() {
	every := max(min(d.lease.interval(), time.Second), 20*time.Millisecond)
	for wait := every; pause.For(d.cfg.Context, wait/2+rand.N(wait)); {
		wait = every
		if d.cfg.Ready() != nil {
			continue
		}
		soon, err := d.seekForsaken(d.cfg.Context)
		if soon {
			wait = min(every, AskAgain)
		}
		if err == nil {
			err = d.due(d.cfg.Context)
		}
		if err != nil && d.cfg.Context.Err() == nil {
			d.cfg.Log.Debug("sessions without an edge were not looked for", "err", err)
		}
	}
}

// seekForsaken finds edges that are gone and lists their dialled sessions as orphans; soon says that there may be
// another.
func (d *adoptions) seekForsaken(ctx context.Context) (soon bool, err error) {
	holders, err := d.cfg.Presence.Dials.Holders(ctx, d.cfg.Holder)
	if err != nil {
		return false, err
	}
	silent, gone := map[presence.Holder]*absence{}, map[presence.Holder]struct{}{}
	for _, h := range holders {
		if h.Alive && h.Age < 2*d.lease.interval() {
			continue
		}
		s := d.silent[h.Holder]
		if s == nil {
			s = new(absence)
		}
		silent[h.Holder] = s
		if h.Alive && !d.handovers.isGone(ctx, h.Holder, s) {
			soon = soon || s.times > 0
			continue
		}
		gone[h.Holder] = struct{}{}
		if err := d.cfg.Presence.Dials.Forsaken(ctx, h.Holder); err != nil {
			return false, err
		}
	}
	d.silent, d.gone = silent, gone
	return soon, nil
}

// due begins to adopt what is due.
func (d *adoptions) due(ctx context.Context) error {
	due, err := d.cfg.Presence.Dials.Orphans(ctx, adoptBatch)
	if err != nil || len(due) == 0 {
		return err
	}
	if whole, err := d.cfg.Presence.Whole(ctx); !whole { // an edge may hold one that has not told so yet
		return err
	}
	rand.Shuffle(len(due), func(i, j int) { due[i], due[j] = due[j], due[i] })
	for _, o := range due {
		orphaned, held, err := d.isOrphan(ctx, o)
		if err != nil {
			return err
		}
		if held {
			if err := d.cfg.Presence.Dials.Adopted(ctx, o); err != nil {
				return err
			}
		}
		if !orphaned {
			continue
		}
		if err := d.keep(ctx, o); err != nil {
			return err
		}
	}
	return nil
}

// keep adopts an orphan in the background, unless another edge dials it, or this one has recently.
func (d *adoptions) keep(ctx context.Context, o presence.Orphan) error {
	at := agora.ToAgent(o.Tenant, o.Agent)
	if !d.cfg.Adopts(o) || !d.begin(at, o.Epoch, true) {
		return nil // for who can
	}
	kept, err := d.cfg.Presence.Dials.Keep(ctx, &o, keptFor)
	if err != nil || !kept {
		d.end(at, o.Epoch, ErrAdopted)
		return err
	}
	d.cfg.Go(func() {
		err := d.cfg.Adopt(d.cfg.Context, o)
		d.end(at, o.Epoch, err)
		switch {
		case err == nil || errors.Is(err, ErrAdopted):
			err = d.cfg.Presence.Dials.Adopted(d.cfg.Context, o)
		default:
			d.cfg.Log.Info("agent was not dialled, which others try too", "agent", o.Agent, "tenant", o.Tenant, "address", o.Dial.Address, "err", err)
			err = d.cfg.Presence.Dials.Left(d.cfg.Context, o)
		}
		if err != nil && d.cfg.Context.Err() == nil {
			d.cfg.Log.Debug("adoption was not noted", "agent", o.Agent, "err", err)
		}
	})
	return nil
}

// isOrphan reports whether a session has no edge any more, or is to have none, and whether a living one holds it.
func (d *adoptions) isOrphan(ctx context.Context, o presence.Orphan) (is, held bool, err error) {
	if _, gone := d.gone[o.Holder]; o.Phase == presence.InGrace || gone || o.Offered && o.Holder != d.cfg.Holder {
		return true, false, nil
	}
	if o.Holder == d.cfg.Holder {
		return false, !o.Offered, nil
	}
	age, alive, err := d.cfg.Presence.Leases.Age(ctx, o.Holder)
	return err == nil && !alive, err == nil && alive && age < 2*d.lease.interval(), err
}

// begin reports whether the adoption of an agent's session under an epoch may begin now, and notes that it has. patient
// says that a setback counts.
func (d *adoptions) begin(at agora.Address, epoch uint64, patient bool) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	if _, is := d.busy[at]; is || len(d.busy) >= mostAdoptions && patient {
		return false
	}
	if f := d.failed[at]; patient && f.epoch == epoch && time.Now().Before(f.until) {
		return false
	}
	d.busy[at] = struct{}{}
	return true
}

// end notes how an adoption went.
func (d *adoptions) end(at agora.Address, epoch uint64, err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	delete(d.busy, at)
	now := time.Now()
	maps.DeleteFunc(d.failed, func(_ agora.Address, f setback) bool { return now.Sub(f.until) > time.Minute })
	if err == nil || errors.Is(err, ErrAdopted) {
		delete(d.failed, at)
		return
	}
	f := setback{epoch: epoch, wait: firstSetback}
	if before := d.failed[at]; before.epoch == epoch {
		f.wait = min(2*before.wait, mostSetback)
	}
	f.until = now.Add(f.wait)
	d.failed[at] = f
}
