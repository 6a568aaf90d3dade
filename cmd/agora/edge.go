package main

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"regexp"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/agora-relay/agora/broker"
	"github.com/agora-relay/agora/presence"
)

// edgeOptions are the flags of `agora edge`.
type edgeOptions struct {
	settings
	id, addr, adminAddr, auth string
	startTimeout, lease       time.Duration
	drainDelay, drainTimeout  time.Duration
	natsURL, natsStorage      string
	replicas, shards          int
	redisURL                  string
}

func newEdge() *cobra.Command {
	var o edgeOptions
	cmd := &cobra.Command{
		Use:   "edge --nats.url URL --redis.url URL --auth none|file:PATH",
		Short: "Run one edge of a cluster, on NATS and Redis that are there",
		Long: "Run one edge of a cluster: agents connect to it, NATS JetStream keeps the messages, Redis knows who is where.\n" +
			"Edges that are given the same NATS and Redis are one cluster. It says ready once agents can connect. On SIGTERM\n" +
			"or SIGINT it is not ready any more, waits --drain.delay, hands its agents over to the other edges and ends.",
		Example: "  agora edge --nats.url nats://10.0.0.1:4222,nats://10.0.0.2:4222 --redis.url redis://10.0.0.4:6379 --auth file:/etc/agora/tokens\n" +
			"  agora edge --nats.url nats://127.0.0.1:4222 --nats.replicas 1 --redis.url redis://127.0.0.1:6379 --auth none",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return o.run(cmd) },
	}
	o.flags(cmd.Flags())
	return cmd
}

// flags defines the flags of o, defaults included.
func (o *edgeOptions) flags(f *pflag.FlagSet) {
	f.StringVar(&o.id, "id", "", "id of the edge, which no other running edge may have; random if empty")
	f.StringVar(&o.addr, "addr", ":8080", "where agents connect; port 0 is any free one")
	f.StringVar(&o.adminAddr, "admin-addr", "127.0.0.1:9100", "where /healthz, /readyz and /metrics are")
	f.StringVar(&o.auth, "auth", "", "who may connect: file:PATH of tokens, or none: everybody may be any agent; must be given")
	f.DurationVar(&o.startTimeout, "start.timeout", time.Minute, "how long NATS and Redis may take to be there at the start")
	f.DurationVar(&o.lease, "edge.lease", 10*time.Second, "how long an edge that is silent keeps its agents; the same at every edge")
	f.DurationVar(&o.drainDelay, "drain.delay", 0, "between not being ready and the first agent told to reconnect")
	f.DurationVar(&o.drainTimeout, "drain.timeout", 25*time.Second, "how long handing agents over may take")

	f.StringVar(&o.natsURL, "nats.url", "nats://127.0.0.1:4222", "addresses of NATS servers, separated by commas")
	f.IntVar(&o.replicas, "nats.replicas", 3, "servers that keep each message: 1, 3 or 5")
	f.IntVar(&o.shards, "nats.shards", 4, "streams for agents, and as many for spaces; can't be changed once they are there")
	f.StringVar(&o.natsStorage, "nats.storage", "file", "where NATS keeps messages: file or memory")
	f.StringVar(&o.redisURL, "redis.url", "redis://127.0.0.1:6379",
		"address of Redis: redis://HOST:PORT, redis-cluster://HOST:PORT?addr=HOST:PORT, redis-sentinel://HOST:PORT?master_name=NAME; rediss… for TLS")
	o.settings.flags(f)
}

func (o *edgeOptions) run(cmd *cobra.Command) error {
	if err := o.check(); err != nil {
		return err
	}
	log, err := o.logger(cmd.ErrOrStderr())
	if err != nil {
		return err
	}
	presence.LogClient(log)
	failed := make(chan error, 2) // one of each port at most
	e, err := listen(cmp.Or(o.id, "edge-"+strings.ToLower(rand.Text()[:8])), o.addr, o.adminAddr, log, func(err error) { failed <- err })
	if err != nil {
		return err
	}
	defer e.close()
	if err := o.start(cmd.Context(), e); err != nil {
		if cmd.Context().Err() != nil {
			return nil // asked to end before it was up
		}
		return err
	}
	fmt.Fprintf(cmd.OutOrStdout(), "ready\n  %s  ws://%s/ws  admin http://%s\n", e.name, e.public.addr(), e.admin.addr())
	select {
	case err = <-failed:
	case <-cmd.Context().Done():
	}
	o.drain(e)
	return err
}

// start connects to NATS and Redis and serves agents, within --start.timeout.
func (o *edgeOptions) start(ctx context.Context, e *edgeServer) error {
	auth, err := authenticator(o.auth)
	if err != nil {
		return err
	}
	p := plan{settings: &o.settings, auth: auth, broker: o.brokerConfig(e.name, e.log), presence: o.settings.presence(e.log)}
	p.presence.Lease = o.lease
	if p.presence.Client, err = presence.Dial(o.redisURL); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, o.startTimeout)
	defer cancel()
	return e.start(ctx, p)
}

func (o *edgeOptions) brokerConfig(name string, log *slog.Logger) broker.Config {
	c := o.settings.broker(name, log)
	c.URL, c.Replicas, c.Shards, c.Memory = o.natsURL, o.replicas, o.shards, o.natsStorage == "memory"
	return c
}

// drain ends the edge in order: whoever sends agents to it learns first that it is going.
func (o *edgeOptions) drain(e *edgeServer) {
	e.leave()
	e.log.Info("draining", "after", o.drainDelay, "within", o.drainTimeout)
	time.Sleep(o.drainDelay)
	ctx, cancel := context.WithTimeout(context.Background(), o.drainTimeout)
	defer cancel()
	e.drain(ctx)
	if ctx.Err() != nil {
		e.log.Warn("not every agent was handed over in time: those left lose their connection, and may return within their grace")
	}
}

var edgeID = regexp.MustCompile(`^[A-Za-z0-9._-]{0,64}$`)

// check refuses what makes no sense.
func (o *edgeOptions) check() error {
	switch {
	case o.auth == "":
		return errors.New("--auth must be given: file:PATH (tokens made by `agora token`), or none if everybody may be any agent")
	case !edgeID.MatchString(o.id):
		return errors.New("--id can't be more than 64 letters, digits, dots, dashes and underscores")
	case o.startTimeout <= 0 || o.lease <= 0 || o.drainTimeout <= 0:
		return errors.New("--start.timeout, --edge.lease and --drain.timeout must be more than nothing")
	case o.drainDelay < 0:
		return errors.New("--drain.delay can't be negative")
	case o.replicas != 1 && o.replicas != 3 && o.replicas != 5:
		return errors.New("--nats.replicas must be 1, 3 or 5")
	case o.shards < 1 || o.shards > 1024:
		return errors.New("--nats.shards must be 1 to 1024")
	case o.natsStorage != "file" && o.natsStorage != "memory":
		return errors.New("--nats.storage is file or memory")
	}
	return o.settings.check()
}
