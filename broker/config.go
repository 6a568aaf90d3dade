package broker

import (
	"cmp"
	"log/slog"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/agora-relay/agora/broker/jslog"
	"github.com/agora-relay/agora/internal/guard"
	"github.com/agora-relay/agora/internal/turns"
)

// Config sets up a Broker. The zero value of each field means its default.
type Config struct {
	URL        string           // comma-separated NATS servers; others of their cluster are found by it. Ignored when Options carry an in-process server
	Access     Access           // how to get in there
	Options    []nats.Option    // added to the Broker's own connection options
	Name       string           // name of the connection: the edge's id
	Record     int              // bytes of a body that the servers must be able to take; what they can, if 0
	Replicas   int              // of each stream: 1, 3 or 5; 1
	Memory     bool             // keep the log in memory instead of in files
	Shards     int              // streams for mailboxes, as many for spaces, and as many for the answers of calls; 1
	MaxAge     time.Duration    // of a record; 10m
	MaxRecords int64            // per mailbox or space; 4096
	ShardBytes int64            // per stream; 256 MiB
	Calls      Keeps            // how the answers of calls are kept; where a field is 0, as mailboxes are
	BookKeep   time.Duration    // of what stands in the book; 24h
	BookBytes  int64            // of the book's stream; 64 MiB
	Duplicates time.Duration    // duplicate window; the shorter of 2m and MaxAge
	InboxBytes int              // live bytes kept for one inbox before it reads the log instead; 256 KiB
	LaneBytes  int              // bytes that one lane gathers before it refuses more; 1 MiB
	Audit      time.Duration    // between two checks of every inbox's position, a third more where they are many; 15s
	Probe      time.Duration    // between two questions to the leader of each stream that somebody listens to; 1s. For tests
	Retry      time.Duration    // before a publish without an answer is sent again, same id; 1.5s
	GiveUp     time.Duration    // before such a publish counts as unknown and the lane looks into the log; 25s, and never more than half of Duplicates. When that has failed for 5s, all that the lane has in hand is refused
	Election   time.Duration    // without an answer of the log after which Lane.Stuck says so: longer than any election takes; 12s
	Shares     Shares           // of a stream that fills; seven eighths for a tenant, and six sevenths of that for a principal
	Turns      *turns.Turns     // in which inboxes read the log, and it is looked through; the Broker's own if nil
	Now        func() time.Time // the machine's wall clock, which only has to be told apart from the log's; tests skew it
	Log        *slog.Logger     // discards if nil

	// For tests.
	write  time.Duration    // for a server to take what is written; 5s
	read   time.Duration    // for one answer of the log; 2s
	tail   time.Duration    // for reading a few records one by one; 500ms
	notify time.Duration    // after a record before it is told once more; 1.2s
	lag    time.Duration    // how long a leader may know less than it is bound by; 2s
	mature time.Duration    // how long other servers may take to learn that a subject is subscribed; 700ms
	clock  func() time.Time // taken for the log's time, whatever the servers say
}

// Keeps is how the streams of one kind keep what is stored in them.
type Keeps struct {
	Replicas   int   // of each stream: 1, 3 or 5
	ShardBytes int64 // per stream
}

// keeps returns how the streams of a kind keep what is stored in them.
func (c *Config) keeps(kind string) Keeps {
	switch kind {
	case jslog.CallKind:
		return c.Calls
	case jslog.BookKind:
		return Keeps{Replicas: c.Replicas, ShardBytes: c.BookBytes}
	}
	return Keeps{Replicas: c.Replicas, ShardBytes: c.ShardBytes}
}

const (
	maxShards = 1024 // beyond it subjects and streams are a mistake, not a plan
)

func (c Config) withDefaults() Config {
	c.Replicas = cmp.Or(c.Replicas, 1)
	c.Shards = cmp.Or(c.Shards, 1)
	c.MaxAge = cmp.Or(c.MaxAge, 10*time.Minute)
	c.MaxRecords = cmp.Or(c.MaxRecords, 4096)
	c.ShardBytes = cmp.Or(c.ShardBytes, 256<<20)
	c.Calls.Replicas = cmp.Or(c.Calls.Replicas, c.Replicas)
	c.Calls.ShardBytes = cmp.Or(c.Calls.ShardBytes, c.ShardBytes)
	c.BookKeep = cmp.Or(c.BookKeep, 24*time.Hour)
	c.BookBytes = cmp.Or(c.BookBytes, 64<<20)
	c.Duplicates = min(cmp.Or(c.Duplicates, 2*time.Minute), c.MaxAge)
	c.InboxBytes = cmp.Or(c.InboxBytes, 256<<10)
	c.LaneBytes = cmp.Or(c.LaneBytes, 1<<20)
	c.Audit = cmp.Or(c.Audit, 15*time.Second)
	c.Probe = cmp.Or(c.Probe, probeEvery)
	c.write = cmp.Or(c.write, writeTime)
	c.read = cmp.Or(c.read, jslog.ReadTime)
	c.tail = cmp.Or(c.tail, jslog.TailTime)
	c.notify = cmp.Or(c.notify, notifyAfter)
	c.lag = cmp.Or(c.lag, leaderLag)
	c.mature = cmp.Or(c.mature, matureAfter)
	c.Retry = cmp.Or(c.Retry, 1500*time.Millisecond)
	// A retry behind the duplicate window would be stored a second time.
	c.GiveUp = min(cmp.Or(c.GiveUp, 25*time.Second), c.Duplicates/2)
	c.Shares = cmp.Or(c.Shares, Shares{Tenant: [2]int64{7, 8}, Own: [2]int64{6, 7}})
	c.Election = cmp.Or(c.Election, 12*time.Second)
	if c.Turns == nil {
		c.Turns = new(turns.Turns)
	}
	if c.Now == nil {
		c.Now = guard.WallClock
	}
	c.Log = cmp.Or(c.Log, slog.New(slog.DiscardHandler))
	return c
}
