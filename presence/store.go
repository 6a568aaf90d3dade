// Package presence keeps, in Redis, which agent is where (claim, lease), its
// card, its session's open lanes and streams, and who is in which space.
//
// An edge holds one lease; an agent's claim names its edge and an epoch that
// grows with every claim. What must be atomic is one Lua script on the keys of
// one hash tag, so that everything works on Redis Cluster. Indexes are keys of
// their own: a member is listed before the script that decides runs, so that an
// edge that dies in between loses nothing, and who finds a stale one drops it.
package presence

import (
	"cmp"
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/agora-relay/agora"
)

// Client is what a Store needs of a client of Redis: each [redis.UniversalClient] is one. It names no more of those, as
// every package that mentions a Store would compile some 1,500 functions of theirs.
type Client interface {
	redis.Cmdable
	PoolStats() *redis.PoolStats
	Close() error
}

// Config sets up a Store. Each zero value but Client's means its default.
type Config struct {
	Client     Client        // owned by the Store; see Dial
	Lease      time.Duration // how long an edge is believed alive after a renewal; 10s
	Grace      time.Duration // how long a session waits for its agent; 30s
	Known      time.Duration // how long an agent is known after its session ended; 10m
	Remember   time.Duration // how long positions of an unknown agent are kept beside; 24h
	EmptyGrace time.Duration // how long an empty public space stays; 1m
	MaxMembers int           // of a space; 4096

	// Cards returns how much agents may say of themselves, in all of the cluster. It must not block. No bounds if nil.
	Cards func() CardBounds

	Now func() time.Time // the clock that the times it is given were read from; time.Now

	// SpaceType tells the type of a space that Redis lost and Reassert makes again; always Public if nil.
	SpaceType func(space string) string

	// Held reports whether this edge holds the claim of an epoch. Sweep asks it of claims that Redis has in
	// this edge's name for a while: one that the edge knows nothing of (the answer to
	// its Claim was lost) goes to grace like a dead edge's. Nothing is asked if nil. It must not block.
	Held func(tenant string, id agora.AgentID, epoch uint64) bool

	Log *slog.Logger // discards if nil
}

func (c Config) withDefaults() Config {
	c.Lease = cmp.Or(c.Lease, 10*time.Second)
	c.Grace = cmp.Or(c.Grace, 30*time.Second)
	c.Known = cmp.Or(c.Known, 10*time.Minute)
	c.Remember = cmp.Or(c.Remember, 24*time.Hour)
	c.EmptyGrace = cmp.Or(c.EmptyGrace, time.Minute)
	c.MaxMembers = cmp.Or(c.MaxMembers, 4096)
	c.Log = cmp.Or(c.Log, slog.New(slog.DiscardHandler))
	if c.Now == nil {
		c.Now = time.Now
	}
	if c.SpaceType == nil {
		c.SpaceType = func(string) string { return Public }
	}
	return c
}

// Store is presence as one edge sees it. Methods may be called at the same
// time; each is one round trip unless it says otherwise. A backend that is away
// is an UNAVAILABLE [agora.Error]; nothing need be done for the Store to
// recover. Nothing runs in a Store between calls.
type Store struct {
	*backend

	Leases        Leases
	Sessions      Sessions
	Positions     Positions
	Lanes         Lanes
	Dials         Dials
	Registrations Registrations
	Directory     Directory
	Addressees    Addressees
	Spaces        Spaces
	Calls         Calls
	Executes      Executes
	Quotas        Quotas
	Links         Links
	Peers         Peers
	Operators     Operators
}

// New returns a Store on cfg.Client. It asks nothing of the server yet.
func New(cfg Config) *Store {
	cfg = cfg.withDefaults()
	return newStore(&backend{cfg: cfg, rdb: cfg.Client, log: cfg.Log, settled: time.Minute, beats: new(beats)})
}

func newStore(b *backend) *Store {
	s := &Store{
		backend:       b,
		Leases:        Leases{b},
		Positions:     Positions{b},
		Lanes:         Lanes{b},
		Registrations: Registrations{b, cards{b}},
		Directory:     Directory{b, cards{b}},
		Addressees:    Addressees{b},
		Spaces:        Spaces{b},
		Executes:      Executes{b},
		Quotas:        Quotas{b},
		Links:         Links{b},
		Peers:         Peers{b},
	}
	s.Dials = Dials{b, s.Leases}
	s.Calls = Calls{b, s.Leases}
	s.Sessions = Sessions{
		backend: b, leases: s.Leases, dials: s.Dials, spaces: s.Spaces, positions: s.Positions, cards: cards{b},
		reviews: &sync.Pool{New: func() any { return new(review) }},
	}
	s.Operators = Operators{b, s.Sessions}
	return s
}

// With returns the same Store with other settings, for what is only known once
// there is a Store. Client and Log stay; closing either closes both.
func (s *Store) With(change func(*Config)) *Store {
	with := *s.backend
	change(&with.cfg)
	with.cfg.Client = s.rdb
	return newStore(&with)
}

// Grace returns Config.Grace.
func (s *Store) Grace() time.Duration { return s.cfg.Grace }

// Close closes the client.
func (s *Store) Close() error { return s.rdb.Close() }

// Ping reports whether the server answers.
func (s *Store) Ping(ctx context.Context) error {
	return unavailable(s.rdb.Ping(ctx).Err())
}
