// Package auth says who is who: the verifiers of credentials behind every
// door, and what has been taken back of what they granted.
package auth

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/agora-relay/agora"
	"github.com/agora-relay/agora/edge"
	"github.com/agora-relay/agora/internal/reload"
)

// MaxToken is the size of the largest token that is looked at, in bytes.
const MaxToken = 16 << 10

// Config says who may connect.
type Config struct {
	Ways    []string     // in order: "file:PATH", "jwt", "mtls"; or "none" alone
	JWT     JWT          // of the way "jwt"
	Revoked string       // file of what is taken back; none if empty
	Log     *slog.Logger // discards if nil
}

// Way is one way in. The first one that knows the credentials decides.
type Way interface {
	knows(c edge.Credentials) bool
	authenticate(ctx context.Context, c edge.Credentials) (edge.Principal, error)
	standing(p *edge.Principal) error // nil while what it granted holds
	sources() []reload.Source
}

// Gate lets in whom one of its ways knows, unless that is taken back. It is an
// [edge.Warden]; its methods may be called by many at a time.
type Gate struct {
	ways    []Way
	revoked *reload.File[revocations] // nil for none
	version atomic.Uint64
	seen    *seen
	stop    context.CancelFunc
	work    sync.WaitGroup
}

// What agents are told, and no more.
var (
	errNone    = agora.Errorf(agora.Unauthorized, "a token is required")
	errInvalid = agora.Errorf(agora.Unauthorized, "the token is not valid")
	errTooLong = agora.Errorf(agora.Unauthorized, "the token is longer than %d bytes", MaxToken)
	errRevoked = agora.Errorf(agora.Unauthorized, "these credentials are revoked")
	errGone    = agora.Errorf(agora.Unauthorized, "the token is not valid any more")
	errChanged = agora.Errorf(agora.Unavailable, "what the token grants has changed: connect again")
)

// None returns an authenticator that asks for nothing: everybody is the same
// party and may be any agent, but nobody may publish to system spaces.
func None() edge.Authenticator { return noAuth{} }

type noAuth struct{}

func (noAuth) Authenticate(context.Context, edge.Credentials) (edge.Principal, error) {
	return edge.Principal{Tenant: agora.DefaultTenant, Any: true, Unverified: true}, nil
}

// Open returns the authenticator of a configuration, and what ends the
// looking after its files and waits for that. It blocks while a set of keys is
// fetched, 5 s at most: one that can't be is asked for again; files have to be there and good.
func Open(cfg Config) (edge.Authenticator, func(), error) {
	if err := cfg.Faults(); err != nil {
		return nil, nil, err
	}
	if slices.Contains(cfg.Ways, "none") {
		return None(), func() {}, nil
	}
	g, err := cfg.open()
	if err != nil {
		return nil, nil, err
	}
	g.start(cmp.Or(cfg.Log, slog.New(slog.DiscardHandler)))
	return g, g.close, nil
}

// Faults returns what makes no sense in the configuration. It reads no file.
func (c Config) Faults() error {
	var errs []error
	for _, way := range c.Ways {
		switch path, isFile := strings.CutPrefix(way, "file:"); {
		case isFile && path == "":
			errs = append(errs, errors.New("auth: file: wants the path of a token file"))
		case !isFile && way != "none" && way != "jwt" && way != "mtls":
			errs = append(errs, errors.New("auth is none, or a list of file:PATH, jwt and mtls, separated by commas"))
		case way == "none" && (len(c.Ways) > 1 || c.Revoked != ""):
			errs = append(errs, errors.New("auth none lets everybody in: nothing can stand beside it"))
		}
	}
	if slices.Contains(c.Ways, "jwt") {
		errs = append(errs, c.JWT.faults())
	} else if c.JWT.given() {
		errs = append(errs, errors.New("auth.jwt.… needs jwt in auth"))
	}
	if len(c.Ways) == 0 {
		errs = append(errs, errors.New("auth must be given"))
	}
	return errors.Join(errs...)
}

// Check returns what is wrong with the files that the configuration names, ids included that no agent may have, with
// which an edge starts nevertheless. It asks nobody else.
func (c Config) Check() error {
	if slices.Contains(c.Ways, "none") || c.Faults() != nil {
		return nil
	}
	g, err := c.open()
	if err != nil {
		return err
	}
	var unused []error
	for _, way := range g.ways {
		if f, is := way.(*tokenFile); is {
			unused = append(unused, f.unused()...)
		}
	}
	return errors.Join(unused...)
}

func (c Config) open() (*Gate, error) {
	g := &Gate{seen: newSeen()}
	for _, name := range c.Ways {
		way, err := c.way(name)
		if err != nil {
			return nil, fmt.Errorf("auth: %w", err)
		}
		g.ways = append(g.ways, way)
	}
	if c.Revoked == "" {
		return g, nil
	}
	var err error
	if g.revoked, err = reload.Open(c.Revoked, parseRevocations); err != nil {
		return nil, fmt.Errorf("auth.revoked: %w", err)
	}
	return g, nil
}

func (c Config) way(name string) (Way, error) {
	switch name {
	case "jwt":
		return newJWT(c.JWT, cmp.Or(c.Log, slog.New(slog.DiscardHandler)))
	case "mtls":
		return mutualTLS{}, nil
	}
	return TokenFile(strings.TrimPrefix(name, "file:"))
}

// start looks after files, and after keys that are fetched.
func (g *Gate) start(log *slog.Logger) {
	ctx, stop := context.WithCancel(context.Background())
	g.stop = stop
	var files []reload.Source
	for _, w := range g.ways {
		files = append(files, w.sources()...)
		if j, ok := w.(*jwtWay); ok && j.remote != nil {
			j.remote.told = func() { g.version.Add(1) }
			j.remote.refresh(ctx) // where it fails, that is logged, and tried again
			g.work.Go(func() { j.remote.watch(ctx) })
		}
	}
	if g.revoked != nil {
		files = append(files, g.revoked)
	}
	g.work.Go(func() {
		reload.Watch(ctx, log, func(reload.Source) { g.version.Add(1) }, files...)
	})
}

func (g *Gate) close() {
	g.stop()
	g.work.Wait()
}

// Authenticate returns whom the first way that knows the credentials names. Those that it has seen in the last minute
// are not verified again, until anything may have been taken back.
func (g *Gate) Authenticate(ctx context.Context, c edge.Credentials) (edge.Principal, error) {
	if len(c.Token) > MaxToken {
		return edge.Principal{}, errTooLong
	}
	version := g.version.Load()
	of, ok := g.seen.hash(c)
	if !ok {
		return g.verify(ctx, c)
	}
	if p, ok := g.seen.get(of, version); ok && g.Revalidate(&p) == nil {
		return p, nil
	}
	p, err := g.verify(ctx, c)
	if err == nil {
		g.seen.put(of, version, p)
	}
	return p, err
}

// verify asks the ways.
func (g *Gate) verify(ctx context.Context, c edge.Credentials) (edge.Principal, error) {
	for _, w := range g.ways {
		if !w.knows(c) {
			continue
		}
		p, err := w.authenticate(ctx, c)
		if err == nil {
			err = g.notRevoked(&p)
		}
		if err != nil {
			return edge.Principal{}, err
		}
		return p, nil
	}
	if c.Token == "" {
		return edge.Principal{}, errNone
	}
	return edge.Principal{}, errInvalid
}

// Version changes whenever something may have been taken back.
func (g *Gate) Version() uint64 { return g.version.Load() }

// Revalidate returns nil while what was granted to p holds: UNAUTHORIZED when it
// was taken back, UNAVAILABLE when it has changed and is to be asked for again.
func (g *Gate) Revalidate(p *edge.Principal) error {
	if err := g.notRevoked(p); err != nil {
		return err
	}
	for _, w := range g.ways {
		if err := w.standing(p); err != nil {
			return err
		}
	}
	return nil
}

func (g *Gate) notRevoked(p *edge.Principal) error {
	if g.revoked != nil && g.revoked.Get().has(p) {
		return errRevoked
	}
	return nil
}
