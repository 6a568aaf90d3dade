package system

import (
	"bytes"
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"time"

	"github.com/agora-relay/agora/bench/internal/proc"
	"github.com/agora-relay/agora/bench/internal/wire"
	"github.com/agora-relay/agora/internal/loadgen"
)

// natsServers says how a cluster of NATS servers is set up.
type natsServers struct {
	n         int
	webSocket bool
	jetStream bool
}

// startServers starts NATS servers and returns their client addresses: of the WebSocket where they have one.
func (c natsServers) startServers(r *Running) (clients []string, err error) {
	binary, err := r.tools.nats()
	if err != nil {
		return nil, err
	}
	addrs, err := proc.Addrs(4 * c.n) // of clients, WebSockets, monitors, routes
	if err != nil {
		return nil, err
	}
	clients, sockets, monitors, routes := addrs[:c.n], addrs[c.n:2*c.n], addrs[2*c.n:3*c.n], addrs[3*c.n:]
	for i := range c.n {
		conf := c.config(r.dir, i, clients[i], sockets[i], monitors[i], routes)
		name := fmt.Sprintf("nats-%d", i)
		path, err := r.file(name+".conf", conf)
		if err != nil {
			return nil, err
		}
		if _, err := r.run(name, binary, "-c", path); err != nil {
			return nil, err
		}
	}
	for i, p := range r.procs[len(r.procs)-c.n:] {
		if err := p.Await(patience, func() bool { return proc.Answers("http://" + monitors[i] + "/healthz") }); err != nil {
			return nil, err
		}
	}
	if c.webSocket {
		return sockets, nil
	}
	return clients, nil
}

// config returns the configuration file of server i.
func (c natsServers) config(dir string, i int, client, socket, monitor string, routes []string) string {
	conf := fmt.Sprintf("server_name: nats-%d\nlisten: %q\nhttp: %q\nmax_payload: 8388608\n", i, client, monitor)
	if c.n > 1 {
		conf += fmt.Sprintf("cluster { name: bench, listen: %q, routes: [%s] }\n", routes[i], "nats://"+strings.Join(routes, ", nats://"))
	}
	if c.webSocket {
		conf += fmt.Sprintf("websocket { listen: %q, no_tls: true }\n", socket)
	}
	if c.jetStream {
		conf += fmt.Sprintf("jetstream { store_dir: %q, max_file_store: 64GB, max_memory_store: 32GB }\n", filepath.Join(dir, fmt.Sprint("nats-", i)))
	}
	return conf
}

func startCore(_ context.Context, r *Running) error {
	return r.plainNATS(natsServers{n: 2}, wire.NATSConfig{})
}

func startNATSWebSocket(_ context.Context, r *Running) error {
	return r.plainNATS(natsServers{n: 2, webSocket: true}, wire.NATSConfig{WebSocket: true})
}

// startForwarded has every byte pass one more process on its way in and one on its way out.
func startForwarded(_ context.Context, r *Running) error {
	if err := r.plainNATS(natsServers{n: 2, webSocket: true}, wire.NATSConfig{WebSocket: true}); err != nil {
		return err
	}
	binary, err := r.tools.program("forward")
	if err != nil {
		return err
	}
	doors, err := proc.Addrs(len(r.addrs))
	if err != nil {
		return err
	}
	for i, door := range doors {
		p, err := r.run(fmt.Sprintf("forward-%d", i), binary, door, r.addrs[i])
		if err != nil {
			return err
		}
		if err := p.Await(patience, func() bool { return proc.Listens(door) }); err != nil {
			return err
		}
	}
	r.addrs = doors
	return nil
}

func (r *Running) plainNATS(c natsServers, cfg wire.NATSConfig) (err error) {
	r.addrs, err = c.startServers(r)
	r.dial = func(ctx context.Context, _ loadgen.Role, addr, id string) (loadgen.Agent, error) {
		return wire.DialNATS(ctx, addr, id, cfg)
	}
	return err
}

// streamConfig is what a user who wants each message kept, and at its receiver
// at once, asks for: retention like that of Agora, and what is stored handed on by RePublish.
const streamConfig = `{"name":"LOG","subjects":["log.>"],"storage":"file","num_replicas":%d,"retention":"limits","discard":"old",
"max_age":600000000000,"max_msgs_per_subject":4096,"max_bytes":17179869184,"republish":{"src":"log.>","dest":"live.log.>"}}`

// jetStream returns what starts a cluster with such a stream, of which it keeps so many copies.
func jetStream(servers, replicas int) func(context.Context, *Running) error {
	return func(ctx context.Context, r *Running) error {
		cfg := wire.NATSConfig{WebSocket: true, Prefix: "log."}
		if err := r.plainNATS(natsServers{n: servers, webSocket: true, jetStream: true}, cfg); err != nil {
			return err
		}
		return r.makeStream(ctx, cfg, replicas)
	}
}

func (r *Running) makeStream(ctx context.Context, cfg wire.NATSConfig, replicas int) error {
	var answer []byte
	config := strings.ReplaceAll(fmt.Sprintf(streamConfig, replicas), "\n", "")
	for deadline := time.Now().Add(patience); time.Now().Before(deadline) && ctx.Err() == nil; {
		nc, err := wire.DialNATS(ctx, r.addrs[0], "setup", cfg)
		if err != nil {
			return err
		}
		answer, err = nc.Ask("$JS.API.STREAM.CREATE.LOG", []byte(config))
		nc.Close()
		if err == nil && !bytes.Contains(answer, []byte(`"error"`)) {
			return nil
		} // no answer, or a refusal, until the cluster has a leader
	}
	return fmt.Errorf("JetStream makes no stream: %s", answer)
}
