package serve

import (
	"cmp"
	"context"
	"crypto/rand"
	"os"
	"strings"
	"time"

	"github.com/agora-relay/agora/cmd/agora/config"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// edgeRun is a run of `agora edge`.
type edgeRun struct {
	config.Edge
	again *config.Reloader // nil without a file
}

func NewEdge() *cobra.Command {
	var o edgeRun
	cmd := &cobra.Command{
		Use:   "edge --nats.url URL --redis.url URL --auth file:PATH|jwt|mtls|none",
		Short: "Run one edge of a cluster, on NATS and Redis that are there",
		Long: "Run one edge of a cluster: agents connect to it, NATS JetStream keeps the messages, Redis knows who is where.\n" +
			"Edges that are given the same NATS and Redis are one cluster. It says ready once agents can connect. On SIGTERM\n" +
			"or SIGINT it is not ready any more, waits --drain.delay, hands its agents over to the other edges and ends.\n\n" + config.ConfigHelp,
		Example: "  agora edge --nats.url nats://10.0.0.1:4222,nats://10.0.0.2:4222 --redis.url redis://10.0.0.4:6379 --auth file:/etc/agora/tokens\n" +
			"  agora edge --nats.url nats://127.0.0.1:4222 --nats.replicas 1 --redis.url redis://127.0.0.1:6379 --auth none",
		Args:        cobra.NoArgs,
		Annotations: withLog,
		RunE: func(cmd *cobra.Command, _ []string) error {
			o.again = config.NewReloader(cmd, func(f *pflag.FlagSet) *config.Settings {
				again := new(config.Edge)
				again.Flags(f)
				return &again.Settings
			})
			return o.run(cmd)
		},
	}
	o.Flags(cmd.Flags())
	return cmd
}

func (o *edgeRun) run(cmd *cobra.Command) error {
	if err := o.Check(); err != nil {
		return err
	}
	if err := o.CheckReadable(); err != nil {
		return err
	}
	log, err := openLog(cmd, &o.Settings)
	if err != nil {
		return err
	}
	failed := make(chan error, 4) // one of each port and of the node at most
	at := places{public: o.Addr, grpc: o.AIP.Place(), p2p: o.P2P.Place(), admin: o.AdminAddr}
	e, err := listen(cmp.Or(o.ID, "edge-"+strings.ToLower(rand.Text()[:8])), at, &o.Settings, log, func(err error) { failed <- err })
	if err != nil {
		return err
	}
	if err := o.start(cmd.Context(), e); err != nil {
		e.close()
		if cmd.Context().Err() != nil {
			return nil // asked to end before it was up
		}
		return err
	}
	warn(e.log, "nobody was told that the edge is ready", announce(cmd, &o.Settings, e))
	select {
	case err = <-failed:
	case <-cmd.Context().Done():
	}
	o.end(e)
	return err
}

// start connects to NATS and Redis and serves agents, within --start.timeout.
func (o *edgeRun) start(ctx context.Context, e *edgeServer) error {
	p := plan{Settings: &o.Settings, again: o.again, auth: o.Auth.Config(e.log), broker: o.Broker(e.name, e.log), alone: true}
	if p.peers.File = o.P2P.Key; o.P2P.On() && o.P2P.Key == "" {
		e.log.Info("peers of libp2p know this edge by another id after each start: p2p.key is not set")
	}
	if o.P2P.ClusterKey != "" {
		p.peers.Cluster = []byte(o.P2P.ClusterKey)
	}
	var err error
	var self *pod
	if o.PodCost {
		if self, err = findPod(os.Getenv, podAccount, e.log); err != nil {
			return err
		}
	}
	if p.presence, err = o.Presence(e.log); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, o.StartTimeout)
	defer cancel()
	e.log.Info("starting: waiting for Redis and NATS", "redis", o.Redis.URL.String(), "nats", o.NATS.URLs.String(), "within", o.StartTimeout)
	if err := e.start(ctx, p); err != nil {
		return err
	}
	if self != nil {
		e.endPodCost = self.follow(func() int64 { return e.node.Stats().Sessions }, podLook)
	}
	return nil
}

// end ends the edge in order: the one who sends agents to it learns first that it is going. It returns when
// drain.timeout is over, whatever does not answer: a supervisor kills what takes longer than it was told.
func (o *edgeRun) end(e *edgeServer) {
	e.leave()
	e.log.Info("draining", "after", o.DrainDelay, "within", o.DrainTimeout)
	time.Sleep(o.DrainDelay)
	over := time.NewTimer(o.DrainTimeout)
	defer over.Stop()
	ctx, cancel := context.WithTimeout(context.Background(), o.DrainTimeout-min(closeTime, o.DrainTimeout/4))
	defer cancel()
	e.drain(ctx)
	closed := make(chan struct{})
	go func() { // waited for, or the process ends with it
		defer close(closed)
		e.close()
	}()
	select {
	case <-closed:
	case <-over.C:
		e.log.Warn("drain.timeout is over: what is still being told to NATS and Redis is left untold, as after a crash")
	}
}

// closeTime is kept, or a quarter of the time there is, for closing connections to NATS and Redis that may say nothing.
const closeTime = 3 * time.Second
