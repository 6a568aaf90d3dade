package system

import (
	"context"
	"fmt"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/agora-relay/agora/bench/internal/aip"
	"github.com/agora-relay/agora/bench/internal/proc"
	"github.com/agora-relay/agora/internal/loadgen"
)

// AIP connects a client of AIP to a server, counted like those of [Running.Dial].
func (r *Running) AIP(server int) (*aip.Client, error) {
	if r.aip == nil {
		return nil, loadgen.ErrNone
	}
	return r.aip(r.addrs[server%len(r.addrs)])
}

// ServerRSS returns the bytes of memory that a server has now, counted like those of [Running.Dial].
func (r *Running) ServerRSS(server int) int64 {
	return r.procs[len(r.procs)-len(r.addrs)+server%len(r.addrs)].RSS()
}

// startNode starts a process that is an agent and a toolbox, at an address each.
func (r *Running) startNode() (agent, toolbox string, err error) {
	binary, err := r.tools.program("aipnode")
	if err != nil {
		return "", "", err
	}
	addrs, err := proc.Addrs(2)
	if err != nil {
		return "", "", err
	}
	p, err := r.run("aipnode", binary, addrs[0], addrs[1])
	if err != nil {
		return "", "", err
	}
	return addrs[0], addrs[1], p.Await(patience, func() bool { return proc.Listens(addrs[0]) && proc.Listens(addrs[1]) })
}

// startAIPDirect has programs of AIP call each other without anybody between.
func startAIPDirect(_ context.Context, r *Running) error {
	agent, toolbox, err := r.startNode()
	if err != nil {
		return err
	}
	r.addrs = []string{agent}
	r.aip = func(string) (*aip.Client, error) { return aip.DialNodes(agent, toolbox) }
	return nil
}

// nginxConf has nginx stand before a node as its documentation has it for gRPC. What would end connections or bound
// calls is put out of the way.
const nginxConf = `daemon off; worker_processes 2; pid %[1]s/nginx.pid; error_log %[1]s/nginx-error.log; %[2]s
events { worker_connections 8192; }
http {
	access_log off;
	client_body_temp_path %[1]s/body; proxy_temp_path %[1]s/proxy; fastcgi_temp_path %[1]s/fastcgi; uwsgi_temp_path %[1]s/uwsgi; scgi_temp_path %[1]s/scgi;
	keepalive_requests 1000000000; keepalive_timeout 1h; client_max_body_size 0; client_body_timeout 1h; send_timeout 1h;
	http2_max_concurrent_streams 1024;
	grpc_read_timeout 1h; grpc_send_timeout 1h;
	upstream agent { server %[4]s; keepalive 128; keepalive_requests 1000000000; }
	upstream toolbox { server %[5]s; keepalive 128; keepalive_requests 1000000000; }
	server {
		listen %[3]s http2;
		location /grpc_service.AgentService/ { grpc_pass grpc://agent; }
		location /grpc_service.ToolService/ { grpc_pass grpc://toolbox; }
	}
}
`

// startAIPProxy has them call each other through nginx.
func startAIPProxy(_ context.Context, r *Running) error {
	agent, toolbox, err := r.startNode()
	if err != nil {
		return err
	}
	binary, err := r.tools.nginx()
	if err != nil {
		return err
	}
	addr, err := proc.Addr()
	if err != nil {
		return err
	}
	user := "" // that of workers, whose folder is ours
	if os.Getuid() == 0 {
		user = "user root;"
	}
	conf, err := r.file("nginx.conf", fmt.Sprintf(nginxConf, r.dir, user, addr, agent, toolbox))
	if err != nil {
		return err
	}
	p, err := r.run("nginx", binary, "-c", conf, "-e", r.dir+"/nginx-error.log")
	if err != nil {
		return err
	}
	r.addrs = []string{addr}
	r.aip = func(addr string) (*aip.Client, error) { return aip.DialNodes(addr, addr) }
	return p.Await(patience, func() bool { return proc.Listens(addr) })
}

// startAIPBare has them call each other through two gateways that pass calls on and do nothing else, as many as Agora
// has edges.
func startAIPBare(_ context.Context, r *Running) error {
	agent, toolbox, err := r.startNode()
	if err != nil {
		return err
	}
	binary, err := r.tools.program("aipgateway")
	if err != nil {
		return err
	}
	if r.addrs, err = proc.Addrs(2); err != nil {
		return err
	}
	r.aip = func(addr string) (*aip.Client, error) { return aip.DialNodes(addr, addr) }
	for _, addr := range r.addrs {
		p, err := r.run("aipgateway", binary, addr, agent, toolbox)
		if err != nil {
			return err
		}
		if err := p.Await(patience, func() bool { return proc.Listens(addr) }); err != nil {
			return err
		}
	}
	return nil
}

// startAIPAgora has them call each other through a cluster like agora-r1, whose first edge they have registered with.
func startAIPAgora(ctx context.Context, r *Running) error {
	agent, toolbox, err := r.startNode()
	if err != nil {
		return err
	}
	if err := (agora{servers: 1, storage: "file", grpc: true}).start(ctx, r); err != nil {
		return err
	}
	c, err := r.AIP(0)
	if err != nil {
		return err
	}
	register, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	err = c.RegisterAgent(register, aip.Agent, agent)
	if err == nil {
		err = c.RegisterToolbox(register, aip.Toolbox, toolbox)
	}
	if err != nil {
		c.Close()
		return err
	}
	r.alive(c)
	return nil
}

// alive has a client give the nodes' signs of life, until the system is stopped.
func (r *Running) alive(c *aip.Client) {
	ctx, cancel := context.WithCancel(context.Background())
	var beating sync.WaitGroup
	beating.Go(func() {
		every := time.NewTicker(10 * time.Second)
		defer every.Stop()
		for {
			for _, id := range []string{aip.Agent, aip.Toolbox} {
				_ = c.Heartbeat(ctx, id) // what comes of none shows in calls
			}
			select {
			case <-every.C:
			case <-ctx.Done():
				return
			}
		}
	})
	r.release = func() {
		cancel()
		beating.Wait()
		c.Close()
	}
}

// byGRPC has clients of AIP come with a token.
func byGRPC(token string) func(addr string) (*aip.Client, error) {
	return func(addr string) (*aip.Client, error) { return aip.DialGateway(addr, strings.TrimSpace(token)) }
}
