package broker

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/agora-relay/agora"
	"github.com/agora-relay/agora/broker/record"
)

// gapCheck is what is to be told in front of a piece of the log.
type gapCheck struct {
	told []agora.Message // a gap, or nothing
	stop bool            // the piece is not to be used: read again
	wait time.Duration   // before that
}

// gap reports whether retention may have taken something between the inbox's position and
// the piece of the log that was read there. Sequences are shared by a whole stream, so a hole in them
// says nothing. But while the record of the position itself is there, nothing after it is gone.
func (i *Inbox) gap(ctx context.Context, p *page) (gapCheck, error) {
	if i.end == 0 {
		return i.gapSince(ctx, p)
	}
	if len(p.msgs) > 0 && p.msgs[0].seq <= i.end+1 {
		i.short = 0
		return gapCheck{}, nil
	}
	if len(p.msgs) > 0 {
		if _, is := record.Mark(p.msgs[0].body); is { // it says itself whether anything is missing before it
			return gapCheck{}, nil
		}
	}
	m, err := i.b.at(ctx, i.at.stream, i.end)
	if err == nil && m.subject == i.at.log() { // the replica that answered lags behind the leader
		return gapCheck{stop: true, wait: lagPause}, nil
	}
	if err != nil && !errors.Is(err, errNone) {
		return gapCheck{}, err
	}
	s, err := i.b.state(ctx, i.at.stream, i.at.log())
	if err != nil {
		return gapCheck{}, err
	}
	if i.end > s.last { // the log was made anew and counts from below: go on from its first record
		if !i.believes(agora.Ticks()) {
			return gapCheck{stop: true, wait: retryPause}, nil
		}
		g, err := i.tellGap(ctx, p, s, 1)
		i.restart()
		g.stop = true
		return g, err
	}
	if !i.mayHaveLost(s) {
		return gapCheck{}, nil
	}
	return i.tellGap(ctx, p, s, i.cursor()+1)
}

// leaderLag is how long a leader may know less than it is bound by: a new one leads before it has applied what the
// old one stored. Taken at its word, it would have a whole mailbox delivered again.
const leaderLag = 2 * time.Second

// believes reports whether the leader's word that the log ends before what was read here has stood for long enough.
func (i *Inbox) believes(now int64) bool {
	if i.short == 0 {
		i.short = now
	}
	return time.Duration(now-i.short) >= i.b.cfg.lag
}

// cursor is the position up to which everything was returned.
func (i *Inbox) cursor() uint64 {
	if i.fresh {
		return i.after
	}
	return i.end<<agora.SeqShift | (record.MaxParts - 1)
}

// restart has the log read from its beginning.
func (i *Inbox) restart() {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.end, i.tail, i.after, i.fresh, i.highest = 0, 0, 0, false, 0
	i.passed = 0
	i.since, i.kept, i.keptAt, i.short = time.Time{}, 0, time.Time{}, 0
}

// mayHaveLost reports whether loss can't be excluded, the record of the position being gone.
func (i *Inbox) mayHaveLost(s streamState) bool {
	i.mu.Lock()
	kept, at := i.kept, i.keptAt
	i.mu.Unlock()
	switch {
	case i.end == s.last: // nothing was stored since in the whole stream
		return false
	case i.cursor() < kept: // something is known to have stood between them
		return true
	case s.count >= i.b.cfg.MaxRecords: // it overflowed, however quiet it was held to be: the record of a position at its end would be there
		return true
	case i.quiet:
		return false
	}
	return i.b.forgets(at) || s.created.After(at)
}

// forgets reports whether what was stored right after a time may be too old to be kept. Clocks may be apart.
func (b *Broker) forgets(at time.Time) bool {
	return at.IsZero() || b.Now().Sub(at) > b.cfg.MaxAge-min(record.VoidAfter-record.DoubtAfter, b.cfg.MaxAge/10)
}

// gapSince is gap for an inbox that has got nothing yet: it begins at a time, or at the beginning of a
// mailbox that was empty when it was looked at last.
func (i *Inbox) gapSince(ctx context.Context, p *page) (gapCheck, error) {
	since := i.since
	if since.IsZero() || !i.fresh {
		i.mu.Lock()
		since = i.keptAt
		i.mu.Unlock()
	}
	read := int64(len(p.msgs) + p.pending)
	if since.IsZero() && read < i.b.cfg.MaxRecords {
		return gapCheck{}, nil // it did not overflow, and nobody knows more
	}
	s, err := i.b.state(ctx, i.at.stream, i.at.log())
	if err != nil {
		return gapCheck{}, err
	}
	overflowed := read >= s.count && s.count >= i.b.cfg.MaxRecords // none of those kept is older than the time
	aged := !since.IsZero() && !i.quiet && (i.b.forgets(since) || s.created.After(since))
	if aged || overflowed {
		return i.tellGap(ctx, p, s, 1)
	}
	return gapCheck{}, nil
}

// tellGap returns a gap from a position to right before the first record there is, and moves the inbox there.
func (i *Inbox) tellGap(ctx context.Context, p *page, s streamState, from uint64) (gapCheck, error) {
	to := s.last // all of the subject that stood up to here is gone, if the leader has none of it
	if len(p.msgs) > 0 {
		to = p.msgs[0].seq - 1
	} else if m, err := i.b.nextOf(ctx, i.at.stream, i.at.log(), 1); err == nil {
		if m.seq > i.end && i.end <= s.last { // the replica that answered lags
			return gapCheck{stop: true, wait: lagPause}, nil
		}
		to = m.seq - 1
	} else if !errors.Is(err, errNone) {
		return gapCheck{}, err
	}
	g := agora.Message{Kind: agora.Gap, To: i.to, N: from, Seq: to<<agora.SeqShift | (record.MaxParts - 1)}
	if g.Seq < g.N {
		return gapCheck{}, nil
	}
	i.mu.Lock()
	i.end, i.endSize, i.tail = to, 0, max(i.tail, g.Seq)
	i.after, i.fresh, i.passed = g.Seq, false, max(i.passed, g.Seq)
	if to == s.last && s.count == 0 { // that is all there was, until what others are sent grows too old as well
		i.kept, i.keptAt = g.Seq, s.at
	}
	i.mu.Unlock()
	i.b.count.gaps.Add(1)
	return gapCheck{told: []agora.Message{g}}, nil
}

// streamState is what the leader knows of a stream and of one subject in it.
type streamState struct {
	created time.Time
	at      time.Time // when that was so, by the leader's clock
	last    uint64    // last sequence handed out
	count   int64     // records of the subject
	first   uint64    // first sequence that is kept
	records uint64    // kept in the whole stream, fences included
	bytes   uint64    // they take
	leader  string    // who it is and since when: another one has another
}

// errNotLed means that a server answered for a stream that it does not lead: one that has just started, or any while
// there is no leader. It knows no more than what it has caught up with.
var errNotLed = errors.New("the stream has no leader, or another server answered for it")

// raft is how a cluster stands to a stream, by the word of one server.
type raft struct {
	Leader   string `json:"leader"`
	Since    string `json:"leader_since"`
	Replicas []struct {
		Name string `json:"name"`
	} `json:"replicas"` // the servers that have the stream, but for the one that says so
}

// led reports whether it is the leader's own word.
func (r *raft) led() bool {
	for _, other := range r.Replicas {
		if other.Name == r.Leader {
			return false
		}
	}
	return r.Leader != ""
}

// state asks the stream's leader, and sets the clock by its answer.
func (b *Broker) state(ctx context.Context, stream, subject string) (streamState, error) {
	var v struct {
		Error   *jetstream.APIError `json:"error"`
		Created time.Time           `json:"created"`
		Time    time.Time           `json:"ts"`
		Cluster *raft               `json:"cluster"` // nil where there is one server alone
		State   struct {
			First    uint64           `json:"first_seq"`
			Last     uint64           `json:"last_seq"`
			Messages uint64           `json:"messages"`
			Bytes    uint64           `json:"bytes"`
			Subjects map[string]int64 `json:"subjects"`
		} `json:"state"`
	}
	var req map[string]any
	if subject != "" {
		req = map[string]any{"subjects_filter": subject}
	}
	sent := time.Now()
	if err := b.api(ctx, "STREAM.INFO."+stream, req, &v); err != nil {
		return streamState{}, err
	}
	b.clock.hear(stream, sample{sent: sent, got: time.Now(), log: v.Time})
	if v.Error != nil {
		return streamState{}, fmt.Errorf("state of %s: %w", stream, v.Error)
	}
	s := streamState{
		created: v.Created, at: v.Time, last: v.State.Last, count: v.State.Subjects[subject], leader: "/",
		first: v.State.First, records: v.State.Messages, bytes: v.State.Bytes,
	}
	if c := v.Cluster; c != nil {
		if !c.led() {
			return streamState{}, fmt.Errorf("state of %s: %w", stream, errNotLed)
		}
		s.leader = c.Leader + "/" + c.Since
	}
	return s, nil
}

// api asks JetStream something.
func (b *Broker) api(ctx context.Context, what string, req map[string]any, answer any) (err error) {
	ctx, cancel := b.waiting(ctx, b.cfg.read)
	defer cancel()
	var body []byte
	if req != nil {
		if body, err = json.Marshal(req); err != nil {
			return err
		}
	}
	resp, err := b.nc.RequestWithContext(ctx, "$JS.API."+what, body)
	if err != nil {
		return fmt.Errorf("asking %s: %w", what, err)
	}
	if err := json.Unmarshal(resp.Data, answer); err != nil {
		return fmt.Errorf("answer of %s: %w", what, err)
	}
	return nil
}
