package serve

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"sync"
	"syscall"

	"github.com/agora-relay/agora/cmd/agora/config"
	"github.com/agora-relay/agora/edge/policy"
	"github.com/agora-relay/agora/internal/reload"
)

// followed is a file of which a running edge takes up what changes.
type followed struct {
	reload.Source
	take func() // takes up what it says now
}

// sources opens the files that the edge follows, and takes up what they say so far.
func (e *edgeServer) sources(p plan) ([]followed, error) {
	if err := e.trust(&p.Settings.Server); err != nil {
		return nil, err
	}
	var all []followed
	if path := p.Settings.Policy; path != "" {
		f, err := reload.Open(path, policy.Parse)
		if err != nil {
			return nil, fmt.Errorf("policy: %w", err)
		}
		e.policy.Set(f.Get())
		all = append(all, followed{f, func() {
			e.policy.Set(f.Get())
			e.log.Info("the policy has changed", "rules", f.Get().Len())
			e.node.Reconsider()
		}})
	}
	if p.again == nil {
		return all, nil
	}
	f, err := reload.Open(p.again.Path, func([]byte) (config.Reloaded, error) { return p.again.Read() })
	if err != nil {
		return nil, err
	}
	before := p.again.Flags
	return append(all, followed{f, func() {
		now := f.Get()
		config.Differences(e.log, before, now.Flags)
		before = now.Flags
		e.node.SetLimits(now.Settings.Limits())
		warn(e.log, "trusted proxies stay as they were", e.trust(&now.Settings.Server))
	}}), nil
}

// reload takes up what changes in files: within a second, or at once on SIGHUP. e.follows ends it.
func (e *edgeServer) reload(all []followed) {
	ctx, stop := context.WithCancel(context.Background())
	hup := make(chan os.Signal, 1)
	signal.Notify(hup, syscall.SIGHUP)
	files := make([]reload.Source, len(all))
	for i, f := range all {
		files[i] = f.Source
	}
	var taking sync.Mutex
	take := func(s reload.Source) {
		taking.Lock()
		defer taking.Unlock()
		for _, f := range all {
			if f.Source == s {
				f.take()
			}
		}
	}
	var work sync.WaitGroup
	work.Go(func() { reload.Watch(ctx, e.log, take, files...) })
	work.Go(func() {
		for {
			select {
			case <-ctx.Done():
				return
			case <-hup:
				e.look(files, take)
			}
		}
	})
	e.endReload = func() {
		signal.Stop(hup)
		stop()
		work.Wait()
	}
}

// look looks at every file at once.
func (e *edgeServer) look(files []reload.Source, take func(reload.Source)) {
	var errs []error
	for _, f := range files {
		changed, err := f.Look()
		errs = append(errs, err)
		if changed {
			take(f)
		}
	}
	if err := errors.Join(errs...); err != nil {
		e.log.Error("SIGHUP: a changed file is not taken: what it said before stays in force", "err", err)
		return
	}
	e.log.Info("SIGHUP: settings and policy are as their files say; tokens, keys and certificates are read each second anyway")
}

// trust has the edge take the word of the proxies that the settings name.
func (e *edgeServer) trust(s *config.Server) error {
	trusted, err := s.Proxies()
	if err != nil {
		return err
	}
	e.proxies.Set(trusted)
	return nil
}
