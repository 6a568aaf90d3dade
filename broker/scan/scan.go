// Package scan looks through the log: for messages, for streams that have no end, for what one lane has stored; it ends
// lanes and drops what is kept. Nothing here is on the path of a message.
package scan

import (
	"cmp"
	"log/slog"
	"time"

	"github.com/agora-relay/agora/broker/jslog"
	"github.com/agora-relay/agora/internal/turns"
)

// Scanner looks through the log. Its methods may be called at the same time.
type Scanner struct {
	log *jslog.Client
	cfg Config
}

// Config sets up a Scanner.
type Config struct {
	Shards     int
	MaxRecords int64                                                // per mailbox or space
	MaxAge     time.Duration                                        // of a record
	Duplicates time.Duration                                        // duplicate window
	Retry      time.Duration                                        // for one answer to what is published
	Turns      *turns.Turns                                         // in which all of the log is looked through
	Clock      *jslog.Clock                                         // the log's time
	Log        *slog.Logger                                         // told of records that can't be read
	NewID      func() string                                        // returns a message id that no other record has
	Stored     func(at jslog.Location, answer jslog.Ack, parts int) // told of each record that was published
	MostOpen   int                                                  // open streams that a search keeps in mind; 65,536 if 0
}

// New returns a Scanner.
func New(log *jslog.Client, cfg Config) *Scanner {
	cfg.MostOpen = cmp.Or(cfg.MostOpen, mostOpen)
	return &Scanner{log: log, cfg: cfg}
}
