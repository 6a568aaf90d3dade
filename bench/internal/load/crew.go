package load

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/agora-relay/agora/bench/internal/wire"
)

// crew is the agents of one load, with a goroutine that reads for each, and some that write.
type crew struct {
	target  Target
	cfg     Config
	name    string // begins the ids of its agents: no other crew of the system has it
	readers sync.WaitGroup
	writers sync.WaitGroup
	writing atomic.Int64 // writers that have not ended
	closing atomic.Bool
	from    atomic.Int64 // texts due from here on are timed, in Unix nanoseconds …
	until   atomic.Int64 // … and until here

	mu      sync.Mutex // guards the fields below
	members []*member
	faults  int64
	fault   string // the first one
}

// member is one agent.
type member struct {
	Agent
	id   string
	got  atomic.Int64  // texts that came in order
	cut  atomic.Bool   // its connection is ended on purpose
	gone chan struct{} // closed when its reader has ended

	late       []time.Duration // the fields below are its reader's own until that has ended
	disordered int64
}

// newMembers connects agents, many at a time, each to the server that home says.
func (c *crew) newMembers(n int, role Role, home func(i int) int) ([]*member, error) {
	all := make([]*member, n)
	err := parallel(n, func(i int) error {
		id := c.name + string(role) + strconv.Itoa(i)
		a, err := c.dial(role, id, home(i))
		if err != nil {
			return fmt.Errorf("connect %s: %w", id, err)
		}
		all[i] = &member{Agent: a, id: id}
		return nil
	})
	all = slices.DeleteFunc(all, func(m *member) bool { return m == nil })
	c.mu.Lock()
	c.members = append(c.members, all...)
	c.mu.Unlock()
	return all, err
}

// dial connects an agent. Like any client it tries again when a server is too busy.
func (c *crew) dial(role Role, id string, server int) (a Agent, err error) {
	for try := range 5 {
		time.Sleep(time.Duration(try) * time.Second / 2)
		if a, err = c.target.Dial(role, id, server); err == nil {
			return a, nil
		}
	}
	return nil, err
}

// parallel calls f for each number below n, some at a time, and returns what went wrong first.
func parallel(n int, f func(i int) error) error {
	var wg sync.WaitGroup
	var next atomic.Int64
	errs := make([]error, 64)
	for w := range errs {
		wg.Go(func() {
			for i := next.Add(1) - 1; i < int64(n) && errs[w] == nil; i = next.Add(1) - 1 {
				errs[w] = f(int(i))
			}
		})
	}
	wg.Wait()
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

// listen starts to read for a member.
func (c *crew) listen(m *member, h wire.Handler) {
	h.Fault = c.refused
	if h.Text == nil {
		h.Text = func([]byte) {}
	}
	if h.Receipt == nil {
		h.Receipt = func(uint64) {}
	}
	a, gone := m.Agent, make(chan struct{})
	m.gone = gone
	c.readers.Go(func() {
		defer close(gone)
		c.ended(m, a.Receive(h))
	})
}

// ended notes that a connection has ended, which is a fault unless it was ended here.
func (c *crew) ended(m *member, err error) {
	if !c.closing.Load() && !m.cut.Load() {
		c.refused(fmt.Sprintf("the connection of %s ended: %v", m.id, err))
	}
}

func (c *crew) refused(what string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.faults++; c.faults == 1 {
		c.fault = what
	}
}

// timed notes how late a text is that arrived just now.
func (c *crew) timed(m *member, due int64) {
	if due >= c.from.Load() && due < c.until.Load() {
		m.late = append(m.late, time.Duration(time.Now().UnixNano()-due))
	}
}

// arrivals returns how many texts have arrived.
func (c *crew) arrivals() (n int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, m := range c.members {
		n += m.got.Load()
	}
	return n
}

// close ends all connections and returns when nothing reads or writes any more.
func (c *crew) close() {
	c.closing.Store(true)
	c.mu.Lock()
	for _, m := range c.members {
		m.Close()
	}
	c.mu.Unlock()
	c.writers.Wait()
	c.readers.Wait()
}

// measure lets a load run, and returns rate and cost of what arrived between
// warm-up and end. The warm-up begins when so much has arrived as all credits
// together allow: what all senders write at once at the start is no load that lasts.
func (c *crew) measure(ctx context.Context, credits int64) (Result, error) {
	err := c.settle(ctx, func() int64 { return credits })
	if err == nil {
		err = pause(ctx, c.cfg.Warm)
	}
	if err != nil {
		return Result{}, err
	}
	began, got, used, own := time.Now(), c.arrivals(), c.target.Usage(), clientCPU()
	err = pause(ctx, c.cfg.Time)
	after := c.target.Usage()
	n := float64(c.arrivals() - got)
	r := Result{Rate: n / time.Since(began).Seconds(), RSS: float64(after.RSS)}
	if n > 0 {
		r.ServerCPU, r.EdgeCPU, r.ClientCPU = us(after.CPU-used.CPU)/n, us(after.Edges-used.Edges)/n, us(clientCPU()-own)/n
	}
	return r, err
}

// write runs a writer, which ends by itself once it is told to, or its connection is closed.
func (c *crew) write(f func()) {
	c.writing.Add(1)
	c.writers.Go(func() {
		defer c.writing.Add(-1)
		f()
	})
}

// drained waits until the writers have ended and all that was sent has arrived, or nothing more comes.
func (c *crew) drained(ctx context.Context, want func() int64) error {
	return c.settle(ctx, func() int64 {
		if c.writing.Load() > 0 {
			return math.MaxInt64
		}
		return want()
	})
}

// settle waits until so much has arrived, or nothing more comes.
func (c *crew) settle(ctx context.Context, want func() int64) error {
	for last, since := int64(-1), time.Now(); time.Since(since) < c.cfg.Patience; {
		got := c.arrivals()
		if got >= want() {
			return nil
		}
		if got != last {
			last, since = got, time.Now()
		}
		if err := pause(ctx, 5*time.Millisecond); err != nil {
			return err
		}
	}
	return nil
}

// finish closes the crew and adds to a result what its members know.
func (c *crew) finish(r *Result) {
	c.close()
	var late []time.Duration
	for _, m := range c.members {
		late = append(late, m.late...)
		r.Disordered += m.disordered
	}
	r.P50, r.P99 = quantiles(late)
	r.Faults, r.Fault = c.faults, c.fault
}

func quantiles(late []time.Duration) (p50, p99 float64) {
	if len(late) == 0 {
		return 0, 0
	}
	slices.Sort(late)
	return us(late[len(late)/2]), us(late[len(late)*99/100])
}

func us(d time.Duration) float64 { return float64(d) / float64(time.Microsecond) }

// pause waits, and fails when ctx ends before.
func pause(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// reach sends hellos until they have opened so many ways. They are repeated where nothing opens for a while, as a
// subscription may have been on its way; less and less often, so that a slow system does not drown in them. It fails after a minute.
func reach(ctx context.Context, want int, open func() int, hello func() error) error {
	const patience = time.Minute
	began, last, since, gap := time.Now(), -1, time.Time{}, time.Second/4
	for {
		n, now := open(), time.Now()
		switch {
		case n == want:
			return nil
		case now.Sub(began) > patience:
			return fmt.Errorf("only %d of %d ways opened within %v", n, want, patience)
		case now.Sub(since) > gap && n == last, last < 0:
			if err := hello(); err != nil {
				return err
			}
			since, gap = time.Now(), 2*gap
		}
		if n != last {
			last, since = n, time.Now()
		}
		if err := pause(ctx, 10*time.Millisecond); err != nil {
			return err
		}
	}
}
