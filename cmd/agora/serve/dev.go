package serve

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/agora-relay/agora/cmd/agora/config"
	"github.com/agora-relay/agora/cmd/agora/logging"
	"github.com/agora-relay/agora/cmd/agora/terminal"
	"github.com/agora-relay/agora/internal/endpoint"
)

// drainTime bounds how long an edge takes to end in order.
const drainTime = 10 * time.Second

// devRun is a run of `agora dev`.
type devRun struct {
	config.Dev
	again   *config.Reloader          // nil without a file
	cluster []byte                    // p2p.cluster-key, or one that was made
	given   func(setting string) bool // nil where all are
	used    map[string]bool           // ports that were found to be free, and are about to be taken
}

func NewDev() *cobra.Command {
	var o devRun
	cmd := &cobra.Command{
		Use:   "dev",
		Short: "Run a whole cluster in this process: log, presence and edges",
		Long: "Run a whole cluster in this process, for development: no services are needed.\n" +
			"With --edges N, edge k (from 0) uses each port + k; --port 9000 has all of them begin there. Where a port is taken that is\n" +
			"not given, the next free one is used, and told. It ends in order on SIGINT or SIGTERM.\n\n" +
			"To see what becomes of agents, type `kill 1`: edge 1 is gone as if its process had died. `start 1` starts it again.\n" +
			"`agora dev kill 1` and `agora dev start 1` do the same from elsewhere.\n\n" +
			"Settings may also be in a file, as for `agora edge`: see `agora config --help`.",
		Args:        cobra.NoArgs,
		Annotations: withLog,
		RunE: func(cmd *cobra.Command, _ []string) error {
			o.again = config.NewReloader(cmd, func(f *pflag.FlagSet) *config.Settings {
				again := new(config.Dev)
				again.Flags(f)
				return &again.Settings
			})
			return o.run(cmd)
		},
	}
	o.Flags(cmd.Flags())
	return cmd
}

func (o *devRun) run(cmd *cobra.Command) error {
	o.given, o.used = cmd.Flags().Changed, map[string]bool{}
	o.Shift(o.given)
	if err := o.Check(cmd.Flags().Changed("auth")); err != nil {
		return err
	}
	if !cmd.Flags().Changed(config.FormatFlag) && terminal.Is(cmd.ErrOrStderr()) {
		o.Log.Format = logging.Short
	}
	log, err := openLog(cmd, &o.Settings)
	if err != nil {
		return err
	}
	o.WarnReadable(log)
	c, err := startCluster(cmd.Context(), o, log)
	if err != nil {
		if cmd.Context().Err() != nil {
			return nil // asked to end before it was up
		}
		return err
	}
	warn(log, "nobody was told that the edges are ready", o.greet(cmd, c))
	c.typed(cmd)
	err = c.wait(cmd.Context())
	log.Info("draining", "within", drainTime)
	c.drain()
	c.close()
	return err
}

// listen takes the ports of edge k.
func (o *devRun) listen(k int, log *slog.Logger, fail func(error)) (*edgeServer, error) {
	at := places{public: o.Addr, grpc: o.AIP.Place(), p2p: o.P2P.Place(), admin: o.AdminAddr}
	for name, addr := range map[string]*string{"addr": &at.public, "grpc-addr": &at.grpc, "p2p-addr": &at.p2p, "admin-addr": &at.admin} {
		if *addr == "" {
			continue
		}
		var err error
		if *addr, err = config.PlusPort(*addr, k); err != nil {
			return nil, err
		}
		if o.given != nil && !o.given(name) {
			*addr = o.free(name, *addr, log)
		}
	}
	return listen(fmt.Sprintf("edge-%d", k), at, &o.Settings, log, fail)
}

// free returns the address, or where its port is taken the next one that is free, and tells so.
func (o *devRun) free(name, addr string, log *slog.Logger) string {
	if strings.HasSuffix(addr, ":0") {
		return addr
	}
	for n := range maxTaken {
		at, err := config.PlusPort(addr, n)
		if err != nil {
			break
		}
		l, err := net.Listen("tcp", at)
		if err == nil {
			l.Close()
		}
		if endpoint.Taken(err) || o.used[at] {
			continue
		}
		if o.used[at] = true; n > 0 {
			log.Warn("port taken: the next free one is used", "setting", name, "taken", addr, "used", at)
		}
		return at
	}
	return addr
}

// maxTaken is how many ports are tried until a free one is found.
const maxTaken = 1000

// peers returns what makes an edge of the cluster a peer of libp2p: kept with the log, or made for as long as that.
func (o *devRun) peers(edge string) (keys config.PeerKeys) {
	keys.File, keys.Cluster = o.P2P.Key, o.cluster
	switch {
	case o.P2P.Key != "" && o.Edges > 1:
		keys.File = o.P2P.Key + "." + edge
	case o.P2P.Key == "" && o.Data != "":
		keys.File = filepath.Join(o.Data, "p2p", edge+".key")
	}
	return keys
}

// clusterKey is the setting, or a key that is made.
func (o *devRun) clusterKey() (err error) {
	switch {
	case o.P2P.ClusterKey != "":
		o.cluster = []byte(o.P2P.ClusterKey)
	case o.Data != "":
		o.cluster, err = clusterKeyIn(filepath.Join(o.Data, "p2p", "cluster.key"))
	default:
		o.cluster = []byte(rand.Text() + rand.Text())
	}
	return err
}

// greet says that agents can connect, where, and to a person what to try.
func (o *devRun) greet(cmd *cobra.Command, c *cluster) error {
	err := announce(cmd, &o.Settings, c.edges...)
	if err != nil || o.Log.Format == logging.JSON {
		return err
	}
	at := ""
	if first := c.edges[0].ports.public.addr(); first != "127.0.0.1:8080" { // the default of the verbs
		at = " --url " + c.edges[0].ports.public.url("ws")
	}
	_, err = fmt.Fprintf(cmd.OutOrStdout(),
		"try, each in a terminal of its own:\n  agora listen%s alice\n  agora send%s --to alice hello\n  agora --help\n", at, at)
	if err == nil && len(c.edges) > 1 && terminal.Is(cmd.InOrStdin()) {
		_, err = fmt.Fprintln(cmd.OutOrStdout(), "or type here: kill 1, start 1")
	}
	return err
}

// drain ends every edge in order, within the time that there is.
func (c *cluster) drain() {
	ctx, cancel := context.WithTimeout(context.Background(), drainTime)
	defer cancel()
	c.each(func(e *edgeServer) { e.drain(ctx) })
}

// warn logs what went wrong while ending: nobody can be told any more.
func warn(log *slog.Logger, what string, err error) {
	if err != nil {
		log.Warn(what, "err", err)
	}
}

// clusterKeyIn returns the cluster key that a file of `agora dev` holds, which is made where it is missing.
func clusterKeyIn(path string) ([]byte, error) {
	b, err := os.ReadFile(path)
	if !errors.Is(err, fs.ErrNotExist) {
		return b, err
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return nil, err
	}
	b = []byte(rand.Text() + rand.Text())
	return b, os.WriteFile(path, b, 0o600)
}
