package config

import (
	"time"

	"github.com/spf13/pflag"
)

// mailboxSettings say what is kept for agents, and for how long.
type mailboxSettings struct {
	on         onOff
	maxAge     time.Duration
	maxRecords int64
	shardBytes size
}

func (s *mailboxSettings) flags(f *pflag.FlagSet) {
	s.on = true
	f.Var(&s.on, "mailbox", "keep messages for agents that are away")
	f.DurationVar(&s.maxAge, "mailbox.max-age", 10*time.Minute, "how long a message is kept, and an agent known that has left")
	f.Int64Var(&s.maxRecords, "mailbox.max-records", 4096, "records kept for one agent or space")
	s.shardBytes = 256 << 20
	f.Var(&s.shardBytes, "mailbox.shard-bytes", "bytes kept in each of the log's streams; full, it refuses senders")
}

func (s *mailboxSettings) faults() []error {
	return append(positive(map[string]time.Duration{"mailbox.max-age": s.maxAge}),
		atLeastOne(map[string]int64{"mailbox.max-records": s.maxRecords, "mailbox.shard-bytes": int64(s.shardBytes)})...)
}
