package system

import (
	"context"
	"fmt"
	"strings"

	"github.com/agora-relay/agora/bench/internal/proc"
	"github.com/agora-relay/agora/bench/internal/wire"
	"github.com/agora-relay/agora/internal/loadgen"
)

// agora is a cluster as in production: two edges with tokens, presence and limits.
type agora struct {
	servers int                     // of NATS, which are the replicas as well
	storage string                  // of the log
	doors   func(token string) dial // by which agents connect; /ws if nil
	grpc    bool                    // clients of AIP connect, and no other agents
}

// dial connects an agent with a role.
type dial func(ctx context.Context, as loadgen.Role, addr, id string) (loadgen.Agent, error)

// byWebSocket has agents speak Agora's own protocol.
func byWebSocket(token string) dial {
	return func(ctx context.Context, as loadgen.Role, addr, id string) (loadgen.Agent, error) {
		return wire.DialAgora(ctx, as, addr, id, token)
	}
}

// bySocket has agents say envelopes by WebSocket.
func bySocket(token string) dial {
	return func(ctx context.Context, _ loadgen.Role, addr, id string) (loadgen.Agent, error) {
		return wire.DialIATSocket(ctx, addr, id, token)
	}
}

// events1 and events2 have agents take events over HTTP/1.1, over HTTP/2; who sends is at /ws.
func events1(token string) dial { return but(byWebSocket(token), posting1(token)) }
func events2(token string) dial { return but(byWebSocket(token), posting2(token)) }

// but has one dial those who send, and another one the others.
func but(sends, others dial) dial {
	return func(ctx context.Context, as loadgen.Role, addr, id string) (loadgen.Agent, error) {
		if as == loadgen.Sends {
			return sends(ctx, as, addr, id)
		}
		return others(ctx, as, addr, id)
	}
}

// posting1 and posting2 have agents post envelopes, and take events, over HTTP/1.1, over HTTP/2.
func posting1(token string) dial {
	return func(ctx context.Context, _ loadgen.Role, addr, id string) (loadgen.Agent, error) {
		return wire.DialIATEvents1(ctx, addr, id, token)
	}
}

func posting2(token string) dial {
	return func(ctx context.Context, _ loadgen.Role, addr, id string) (loadgen.Agent, error) {
		return wire.DialIATEvents2(ctx, addr, id, token)
	}
}

// sharing has agents take events over connections that they share; who sends is at /ws.
func sharing(token string) dial {
	s := new(wire.Shared)
	return but(byWebSocket(token), func(ctx context.Context, _ loadgen.Role, addr, id string) (loadgen.Agent, error) {
		return s.Dial(ctx, addr, id, token)
	})
}

func (a agora) start(_ context.Context, r *Running) error {
	clients, err := natsServers{n: a.servers, jetStream: true}.startServers(r)
	if err != nil {
		return err
	}
	redis, err := r.startRedis()
	if err != nil {
		return err
	}
	binary, err := r.tools.agora()
	if err != nil {
		return err
	}
	made, err := output(r.dir, binary, "token", "bench", "--agents", "*")
	if err != nil {
		return err
	}
	token, line, _ := strings.Cut(made, "\n")
	tokens, err := r.file("tokens", line)
	if err != nil {
		return err
	}
	if a.doors == nil {
		a.doors = byWebSocket
	}
	r.dial = a.doors(token)
	if a.grpc {
		r.aip = byGRPC(token)
	}
	return a.edges(r, binary,
		"--auth", "file:"+tokens, "--nats.url", "nats://"+strings.Join(clients, ",nats://"), "--redis.url", "redis://"+redis,
		"--nats.replicas", fmt.Sprint(a.servers), "--nats.storage", a.storage,
		// More of them spread leaders over machines, of which there is one.
		"--nats.shards", "1",
		// Rates are limited, and at no rate that is reached: what it costs is to count.
		"--limits.rate", "1e7", "--limits.bytes", "1e10",
		// Enough for what a run writes within the ten minutes that it is kept.
		"--mailbox.shard-bytes", "8GiB")
}

// edges starts two edges and waits until they are ready.
func (a agora) edges(r *Running, binary string, flags ...string) error {
	addrs, err := proc.Addrs(6)
	if err != nil {
		return err
	}
	r.addrs = addrs[:2]
	for i, addr := range r.addrs {
		name, grpc := fmt.Sprintf("edge-%d", i), "none"
		if a.grpc {
			grpc = addrs[4+i]
		}
		argv := append([]string{binary, "edge", "--id", name, "--addr", addr, "--admin-addr", addrs[2+i], "--grpc-addr", grpc, "--p2p-addr", "none", "--node.dial-allow", "127.0.0.0/8"}, flags...)
		if _, err := r.run(name, argv...); err != nil {
			return err
		}
	}
	for i, p := range r.procs[len(r.procs)-2:] {
		if err := p.Await(patience, func() bool { return proc.Answers("http://" + addrs[2+i] + "/readyz") }); err != nil {
			return err
		}
	}
	if a.grpc {
		r.addrs = addrs[4:]
	}
	return nil
}

// startRedis starts a redis-server that keeps nothing on disk, and returns its address.
func (r *Running) startRedis() (string, error) {
	binary, err := r.tools.redis()
	if err != nil {
		return "", err
	}
	addr, err := proc.Addr()
	if err != nil {
		return "", err
	}
	host, port, _ := strings.Cut(addr, ":")
	p, err := r.run("redis", binary, "--port", port, "--bind", host, "--dir", r.dir, "--save", "", "--appendonly", "no")
	if err != nil {
		return "", err
	}
	return addr, p.Await(patience, func() bool { return proc.Listens(addr) })
}
