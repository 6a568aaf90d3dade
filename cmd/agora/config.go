package main

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
	"time"

	"github.com/spf13/pflag"

	"github.com/agora-relay/agora/broker"
	"github.com/agora-relay/agora/edge"
	"github.com/agora-relay/agora/edge/web"
	"github.com/agora-relay/agora/edge/ws"
	"github.com/agora-relay/agora/presence"
	"github.com/agora-relay/agora/wire"
)

// settings are those of every edge, however it is run. Where their values come
// from, origins tells.
type settings struct {
	grace, heartbeat, timeout time.Duration
	autoCreate                bool
	maxMembers, wholeRoster   int
	deltaThreshold            size
	emptyGrace                time.Duration
	mailbox                   onOff
	maxAge                    time.Duration
	maxRecords                int64
	shardBytes                size
	frame, body               size
	depth, name, errors       int
	streams, spaces           int
	rate, bytes, burst        float64
	connections               int
	queued                    size
	drainRate                 int
	server                    serverSettings
	more                      limitSettings
	calls                     callSettings
	dial                      dialSettings
	iat                       iatSettings
	aip                       aipSettings
	p2p                       p2pSettings
	logLevel, logFormat       string
	operators                 adminSettings
	tracing                   traceSettings
}

// flags defines the flags of s, defaults included.
func (s *settings) flags(f *pflag.FlagSet) {
	f.DurationVar(&s.grace, "session.grace", 30*time.Second, "how long a session waits for an agent that lost its connection")
	f.DurationVar(&s.heartbeat, "session.heartbeat", 30*time.Second, "between signs of life to a quiet agent")
	f.DurationVar(&s.timeout, "session.timeout", time.Minute, "a connection silent for so long is dead")

	f.BoolVar(&s.autoCreate, "spaces.auto-create", true, "the first join makes a public space")
	f.IntVar(&s.maxMembers, "spaces.max-members", 4096, "members of a space")
	f.IntVar(&s.wholeRoster, "spaces.whole-roster", 256, "members of a space up to which every change of its roster names all of them")
	s.deltaThreshold = 16 << 10
	f.Var(&s.deltaThreshold, "spaces.delta-threshold", "text of an event beyond which it goes out in deltas")
	f.DurationVar(&s.emptyGrace, "spaces.empty-grace", time.Minute, "how long an empty public space stays")

	s.mailbox = true
	f.Var(&s.mailbox, "mailbox", "keep messages for agents that are away")
	f.DurationVar(&s.maxAge, "mailbox.max-age", 10*time.Minute, "how long a message is kept, and an agent known that has left")
	f.Int64Var(&s.maxRecords, "mailbox.max-records", 4096, "records kept for one agent or space")

	s.shardBytes = 256 << 20
	f.Var(&s.shardBytes, "mailbox.shard-bytes", "bytes kept in each of the log's streams; full, it refuses senders")

	s.frame = 1 << 20
	f.Var(&s.frame, "limits.frame", "size of a frame")
	s.body = 1 << 20
	f.Var(&s.body, "limits.body", "size of the body of an HTTP request")
	f.IntVar(&s.depth, "limits.depth", 64, "nesting of a frame, and of the JSON of an HTTP request")
	f.IntVar(&s.name, "limits.name", 256, "characters of a stream id, frame id, event id or name")
	f.IntVar(&s.errors, "limits.errors", 100, "errors that a connection may cause in 10 s")
	f.IntVar(&s.streams, "limits.streams", 1024, "open streams of one agent")
	f.IntVar(&s.spaces, "limits.spaces", 256, "spaces of one agent")
	f.Float64Var(&s.rate, "limits.rate", 0, "messages per second of one agent; 0 for no limit")
	f.Float64Var(&s.bytes, "limits.bytes", 0, "bytes per second of one agent; 0 for no limit")
	f.Float64Var(&s.burst, "limits.burst", 1, "seconds' worth of both that may come at once")

	f.IntVar(&s.connections, "limits.connections", 0, "connections, and HTTP requests at a time, of one edge; 0 for as many as the process may open files for, with room to spare")
	s.queued = 256 << 20
	f.Var(&s.queued, "limits.queued", "bytes that one edge holds for all its connections together, before it sheds the newest")

	s.more.flags(f)
	s.calls.flags(f)
	s.iat.flags(f)
	s.aip.flags(f)
	s.p2p.flags(f)
	f.IntVar(&s.drainRate, "drain.rate", 1000, "agents told to reconnect per second when the edge ends")
	s.server.flags(f)
	s.operators.flags(f)
	s.tracing.flags(f)
	f.StringVar(&s.logLevel, "log.level", "info", "debug, info, warn or error")
	f.StringVar(&s.logFormat, formatFlag, textLog, "text, json, or short: a line for a person, which `agora dev` has at a terminal")
}

// faults returns what makes no sense, each by its name.
func (s *settings) faults() (all []error) {
	for _, d := range []struct {
		name string
		time.Duration
	}{
		{"session.grace", s.grace}, {"session.heartbeat", s.heartbeat}, {"session.timeout", s.timeout},
		{"spaces.empty-grace", s.emptyGrace}, {"mailbox.max-age", s.maxAge},
	} {
		if d.Duration <= 0 {
			all = append(all, fmt.Errorf("%s must be more than nothing", d.name))
		}
	}
	for _, n := range []struct {
		name  string
		value int64
	}{
		{"spaces.max-members", int64(s.maxMembers)}, {"spaces.whole-roster", int64(s.wholeRoster)},
		{"spaces.delta-threshold", int64(s.deltaThreshold)},
		{"mailbox.max-records", s.maxRecords}, {"mailbox.shard-bytes", int64(s.shardBytes)},
		{"limits.frame", int64(s.frame)}, {"limits.body", int64(s.body)}, {"limits.depth", int64(s.depth)}, {"limits.name", int64(s.name)},
		{"limits.errors", int64(s.errors)}, {"limits.streams", int64(s.streams)}, {"limits.spaces", int64(s.spaces)},
		{"drain.rate", int64(s.drainRate)},
	} {
		if n.value < 1 {
			all = append(all, fmt.Errorf("%s must be at least 1", n.name))
		}
	}
	all = append(all,
		unless(s.rate >= 0, "limits.rate can't be negative"),
		unless(s.bytes >= 0, "limits.bytes can't be negative"),
		unless(s.burst > 0, "limits.burst must be more than nothing"),
		unless(s.frame <= 7<<20, "limits.frame can't be more than 7MiB: a frame must fit one record of the log"),
		unless(s.body <= 64<<20, "limits.body can't be more than 64MiB"),
		unless(s.connections >= 0, "limits.connections can't be negative"),
		unless(s.queued >= 4*max(s.frame, s.body), "limits.queued must be at least four times limits.frame and limits.body"),
		unless(s.timeout >= s.heartbeat, "session.timeout can't be shorter than session.heartbeat"),
	)
	all = append(all, s.more.faults()...)
	all = append(all, s.calls.faults()...)
	all = append(all, s.dial.faults()...)
	all = append(all, s.iat.faults()...)
	all = append(all, s.aip.faults()...)
	all = append(all, s.p2p.faults()...)
	_, err := s.logger(io.Discard)
	all = append(all, s.tracing.faults()...)
	return append(append(all, s.server.faults()...), err)
}

// unless returns the fault that there is when something does not hold.
func unless(holds bool, fault string) error {
	if holds {
		return nil
	}
	return errors.New(fault)
}

func (s *settings) broker(name string, log *slog.Logger) broker.Config {
	return broker.Config{
		Name: name, Record: int(s.frame), MaxAge: s.maxAge, MaxRecords: s.maxRecords, ShardBytes: int64(s.shardBytes),
		Calls: s.calls.keeps(), BookKeep: s.iat.keep, Turns: s.server.turns, Log: log,
	}
}

func (s *settings) presence(log *slog.Logger) presence.Config {
	return presence.Config{
		Grace: s.grace, Known: s.maxAge, EmptyGrace: s.emptyGrace, MaxMembers: s.maxMembers, Log: log,
	}
}

func (s *settings) node(id string, log *slog.Logger) edge.Config {
	dialer, err := s.dial.dialer()
	if err != nil {
		panic(err) // faults has found it
	}
	return edge.Config{
		Dialer: dialer,
		ID:     id, Heartbeat: s.heartbeat, Timeout: s.timeout, MailboxOff: !bool(s.mailbox),
		Register: s.more.register, MaxAge: s.maxAge, MaxRecords: s.maxRecords, NoAutoCreate: !s.autoCreate, WholeRoster: s.wholeRoster, DeltaThreshold: int(s.deltaThreshold), DrainRate: s.drainRate,
		Limits: s.limits(), Log: log,
	}
}

func (s *settings) web(log *slog.Logger) web.Config {
	return web.Config{
		Origins: edge.Origins{Listed: s.server.origins}, Body: int(s.body), Depth: s.depth, BodyTime: readBody, Write: writeTime,
		DrainRate: s.drainRate, Log: log,
	}
}

func (s *settings) door(log *slog.Logger) ws.Config {
	return ws.Config{
		Origins: s.server.origins, MaxErrors: s.errors,
		Limits: wire.Limits{Depth: s.depth, Name: s.name}, Turns: s.server.turns, Log: log,
	}
}
