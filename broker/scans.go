package broker

import (
	"context"

	"github.com/agora-relay/agora/broker/scan"
)

// What is looked for in the log, and found there.
type (
	Search  = scan.Search
	Stored  = scan.Stored
	Finding = scan.Finding
	Unended = scan.Unended
	Mailbox = scan.Mailbox
)

// scanner gives the Broker its methods Find, Unended, Purge, Forget and Mailbox.
type scanner = scan.Scanner

func (b *Broker) scanConfig() scan.Config {
	return scan.Config{
		Shards: b.cfg.Shards, MaxRecords: b.cfg.MaxRecords, MaxAge: b.cfg.MaxAge, Duplicates: b.cfg.Duplicates, Retry: b.cfg.Retry,
		Turns: b.cfg.Turns, Clock: b.clock, Log: b.cfg.Log, NewID: func() string { return b.ids.of(b.ids.next()) }, Stored: b.noteStored,
	}
}

// EndLane ends a lane for good, for whoever ends the session: it fences, reads the log and
// stores one Abort (Body is the code, STREAM_ABORTED) for each open stream. Repeating it, at several edges at
// once, is harmless: the younger fence stops the older one's write, and then the reading shows what is stored.
// It fails with ErrDeposed when a younger epoch holds the lane, and with an *agora.Error when the
// log is full or could not be reached before ctx was over.
func (b *Broker) EndLane(ctx context.Context, cfg LaneConfig) error {
	ctx, stop := b.whileOpen(ctx)
	defer stop()
	return scan.End(ctx, b.scanner, scan.Lane{From: cfg.From, Session: cfg.Session, Epoch: cfg.Epoch, To: cfg.To, Dirty: cfg.Dirty, Open: cfg.Open})
}
