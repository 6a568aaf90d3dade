package main

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"path/filepath"
	"strconv"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/agora-relay/agora/cmd/agora/terminal"
)

// drainTime bounds how long an edge takes to end in order.
const drainTime = 10 * time.Second

// devOptions are the flags of `agora dev`.
type devOptions struct {
	settings
	again           *rereading // nil without a file
	edges           int
	addr, adminAddr string
	data            string
	cluster         []byte // p2p.cluster-key, or one that was made
	auth            authSettings
	authSaid        bool // --auth was given, not defaulted
}

func newDev() *cobra.Command {
	var o devOptions
	cmd := &cobra.Command{
		Use:   "dev",
		Short: "Run a whole cluster in this process: log, presence and edges",
		Long: "Run a whole cluster in this process, for development: no services are needed.\n" +
			"With --edges N, edge k (from 0) uses each port + k. It ends in order on SIGINT or SIGTERM.\n\n" +
			"Settings may also be in a file, as for `agora edge`: see `agora config --help`.",
		Args:        cobra.NoArgs,
		Annotations: withLog,
		RunE: func(cmd *cobra.Command, _ []string) error {
			o.authSaid = cmd.Flags().Changed("auth")
			o.again = rereads(cmd, func(f *pflag.FlagSet) *settings {
				again := new(devOptions)
				again.define(f)
				return &again.settings
			})
			return o.run(cmd)
		},
	}
	o.define(cmd.Flags())
	return cmd
}

// define defines every flag of o, defaults included.
func (o *devOptions) define(f *pflag.FlagSet) {
	fileFlag(f)
	f.IntVar(&o.edges, "edges", 1, "how many edges")
	f.StringVar(&o.addr, "addr", "127.0.0.1:8080", "where agents connect; port 0 is any free one")
	f.StringVar(&o.adminAddr, "admin-addr", defaultAdmin, "where /healthz, /readyz, /metrics and what operators ask are")
	f.StringVar(&o.data, "data", "", "folder that keeps the log; without it the log ends with the process")
	o.auth.flags(f, "none", "")
	o.dial.flags(f, nil)
	o.iat.resolveFlag(f, true)
	o.flags(f)
}

func (o *devOptions) run(cmd *cobra.Command) error {
	if err := o.check(); err != nil {
		return err
	}
	if !cmd.Flags().Changed(formatFlag) && terminal.Is(cmd.ErrOrStderr()) {
		o.logFormat = shortLog
	}
	log, err := o.openLog(cmd)
	if err != nil {
		return err
	}
	c, err := startCluster(cmd.Context(), o, log)
	if err != nil {
		if cmd.Context().Err() != nil {
			return nil // asked to end before it was up
		}
		return err
	}
	warn(log, "nobody was told that the edges are ready", o.greet(cmd, c))
	err = c.wait(cmd.Context())
	log.Info("draining", "within", drainTime)
	c.drain()
	c.close()
	return err
}

func (o *devOptions) check() error {
	all := append(o.faults(), o.auth.faults()...)
	all = append(all, unless(!o.auth.has("mtls") || o.server.tls.clientCA != "", "auth mtls needs tls.cert, tls.key and tls.client-ca"))
	if o.edges < 1 {
		all = append(all, errors.New("edges must be at least 1"))
	}
	for _, addr := range []string{o.addr, o.aip.place(), o.p2p.place()} {
		if o.auth.choice == "none" && !o.authSaid && addr != "" && !isLoopback(addr) {
			all = append(all, fmt.Errorf("%s can be reached by others: give --auth file:PATH, or --auth none if everybody may be any agent", addr))
		}
	}
	return errors.Join(all...)
}

// listen takes the ports of edge k.
func (o *devOptions) listen(k int, log *slog.Logger, fail func(error)) (*edgeServer, error) {
	at := places{public: o.addr, grpc: o.aip.place(), p2p: o.p2p.place(), admin: o.adminAddr}
	for _, addr := range []*string{&at.public, &at.grpc, &at.p2p, &at.admin} {
		if *addr == "" {
			continue
		}
		var err error
		if *addr, err = plus(*addr, k); err != nil {
			return nil, err
		}
	}
	return listen(fmt.Sprintf("edge-%d", k), at, &o.settings, log, fail)
}

// peers returns what makes an edge of the cluster a peer of libp2p: kept with the log, or made for as long as that.
func (o *devOptions) peers(edge string) (keys peerKeys) {
	keys.file, keys.cluster = o.p2p.key, o.cluster
	switch {
	case o.p2p.key != "" && o.edges > 1:
		keys.file = o.p2p.key + "." + edge
	case o.p2p.key == "" && o.data != "":
		keys.file = filepath.Join(o.data, "p2p", edge+".key")
	}
	return keys
}

// clusterKey is the setting, or a key that is made.
func (o *devOptions) clusterKey() (err error) {
	switch {
	case o.p2p.clusterKey != "":
		o.cluster = []byte(o.p2p.clusterKey)
	case o.data != "":
		o.cluster, err = clusterKeyIn(filepath.Join(o.data, "p2p", "cluster.key"))
	default:
		o.cluster = []byte(rand.Text() + rand.Text())
	}
	return err
}

// isLoopback tells whether an address can be reached from this machine only.
func isLoopback(addr string) bool {
	host, _, err := net.SplitHostPort(addr)
	if err != nil {
		return false
	}
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}

// plus returns the address of edge k; port 0 stays any free one.
func plus(addr string, k int) (string, error) {
	host, port, err := net.SplitHostPort(addr)
	if err != nil {
		return "", err
	}
	n, err := strconv.ParseUint(port, 10, 16)
	if err != nil {
		return "", fmt.Errorf("address %s: port is not a number", addr)
	}
	if n != 0 {
		n += uint64(k)
	}
	return net.JoinHostPort(host, strconv.FormatUint(n, 10)), nil
}

// greet says that agents can connect, where, and to a person what to try.
func (o *devOptions) greet(cmd *cobra.Command, c *cluster) error {
	err := o.announce(cmd, c.edges...)
	if err != nil || o.logFormat == jsonLog {
		return err
	}
	at := ""
	if first := c.edges[0].public.addr(); first != "127.0.0.1:8080" { // the default of the verbs
		at = " --url " + c.edges[0].public.url("ws")
	}
	_, err = fmt.Fprintf(cmd.OutOrStdout(),
		"try, each in a terminal of its own:\n  agora listen%s alice\n  agora send%s --to alice hello\n  agora --help\n", at, at)
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
