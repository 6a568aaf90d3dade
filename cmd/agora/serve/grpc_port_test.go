package serve

import (
	"bytes"
	"context"
	"crypto/tls"
	"io"
	"log/slog"
	"net"
	"net/netip"
	"sync/atomic"
	"testing"
	"time"

	"github.com/pires/go-proxyproto"
	"google.golang.org/grpc"
	grpccreds "google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	grpchealth "google.golang.org/grpc/health"
	"google.golang.org/grpc/health/grpc_health_v1"

	"github.com/agora-relay/agora/cmd/agora/config"
	"github.com/agora-relay/agora/cmd/agora/porttest"
	"github.com/agora-relay/agora/edge"
	"github.com/agora-relay/agora/edge/aip"
	"github.com/agora-relay/agora/internal/await"
	"github.com/agora-relay/agora/internal/servers"
)

// grpcServed is a gRPC port whose server answers health checks: who asks is let in.
type grpcServed struct {
	*grpcPort
	t    *testing.T
	from chan string // where callers come from
}

func serveGRPC(t *testing.T, cfg portConfig) *grpcServed {
	t.Helper()
	p, err := openGRPC("127.0.0.1:0", cfg, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	s := &grpcServed{grpcPort: p, t: t, from: make(chan string, 99)}
	opts := []grpc.ServerOption{
		grpc.UnaryInterceptor(func(ctx context.Context, in any, _ *grpc.UnaryServerInfo, handle grpc.UnaryHandler) (any, error) {
			defer p.admitted(ctx)()
			s.from <- aip.CallerAddr(ctx).String()
			return handle(ctx, in)
		}),
		grpc.StreamInterceptor(func(srv any, ss grpc.ServerStream, _ *grpc.StreamServerInfo, handle grpc.StreamHandler) error {
			defer p.admitted(ss.Context())()
			return handle(srv, ss)
		}),
	}
	if p.certs != nil {
		opts = append(opts, grpc.Creds(grpccreds.NewTLS(p.certs.Config(false))))
	}
	server := grpc.NewServer(opts...)
	grpc_health_v1.RegisterHealthServer(server, grpchealth.NewServer())
	p.serve(server.Serve, func(err error) { t.Error(err) })
	t.Cleanup(func() {
		server.Stop()
		p.close()
	})
	return s
}

// waits returns how many connections are pending, and how many are idle.
func (s *grpcServed) waits() (pending, idle int) { return s.Pending(), s.idle.size() }

// asker asks a port over one connection at a time, and counts them.
type asker struct {
	grpc_health_v1.HealthClient
	*grpc.ClientConn
	t     *testing.T
	dials atomic.Int64
}

func (s *grpcServed) asker() *asker {
	s.t.Helper()
	a := &asker{t: s.t}
	c, err := grpc.NewClient("passthrough:///"+s.Addr().String(), grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithContextDialer(func(ctx context.Context, at string) (net.Conn, error) {
			a.dials.Add(1)
			return new(net.Dialer).DialContext(ctx, "tcp", at)
		}))
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() { c.Close() })
	a.ClientConn, a.HealthClient = c, grpc_health_v1.NewHealthClient(c)
	return a
}

// asks wants an answer, by its n-th connection.
func (a *asker) asks(n int64) {
	a.t.Helper()
	_, err := a.Check(await.Context(a.t), new(grpc_health_v1.HealthCheckRequest), grpc.WaitForReady(true))
	if dials := a.dials.Load(); err != nil || dials != n {
		a.t.Errorf("answered %v, by connection %d, want %d", err, dials, n)
	}
}

func TestAFullGRPCPortClosesStrangersAlone(t *testing.T) {
	t.Parallel()
	s := serveGRPC(t, portConfig{})
	s.Resize(4, 100*time.Millisecond)
	s.keep(99)
	watches, idle, late := s.asker(), s.asker(), s.asker()
	w, err := watches.Watch(await.Context(t), new(grpc_health_v1.HealthCheckRequest))
	if err == nil {
		_, err = w.Recv()
	}
	if err != nil {
		t.Fatal(err)
	}
	idle.asks(1)
	var slow []*porttest.H2
	for range 12 {
		slow = append(slow, porttest.Prefaced(t, s.Addr().String()))
	}
	late.asks(1)
	slow[0].Cut()
	idle.asks(1)
	watches.asks(1)
	await.True(t, "two connections are idle, and four strangers wait at most", func() bool {
		strangers, idle := s.waits()
		return idle == 2 && strangers <= 4
	})
}

func TestTheConnectionOfGRPCThatIsIdleLongestMakesRoom(t *testing.T) {
	t.Parallel()
	s := serveGRPC(t, portConfig{})
	s.keep(2)
	one, two, three := s.asker(), s.asker(), s.asker()
	for n, a := range []*asker{one, two, three} {
		a.asks(1)
		await.True(t, "it is idle", func() bool { _, idle := s.waits(); return idle == min(n+1, 2) })
	}
	await.True(t, "the first is cut off", func() bool {
		one.Connect()
		return one.dials.Load() == 2
	})
	one.asks(2)
	three.asks(1)
}

func TestNothingIsKeptOfConnectionsOfGRPCThatAreGone(t *testing.T) {
	t.Parallel()
	s := serveGRPC(t, portConfig{})
	a, calls := s.asker(), s.asker()
	a.asks(1)
	w, err := calls.Watch(await.Context(t), new(grpc_health_v1.HealthCheckRequest))
	if err == nil {
		_, err = w.Recv()
	}
	stranger := porttest.Prefaced(t, s.Addr().String())
	await.True(t, "one waits, and one is idle", func() bool { strangers, idle := s.waits(); return strangers == 1 && idle == 1 })
	for _, c := range []io.Closer{a.ClientConn, calls.ClientConn, stranger} {
		if e := c.Close(); e != nil || err != nil {
			t.Fatal(e, err)
		}
	}
	await.True(t, "nobody is left", func() bool { strangers, idle := s.waits(); return strangers == 0 && idle == 0 })
}

func TestWhoComesByAProxyMaySpeakGRPC(t *testing.T) {
	t.Parallel()
	trusted := new(edge.Proxies)
	trusted.Set([]netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")})
	s := serveGRPC(t, portConfig{proxies: trusted})
	var head bytes.Buffer
	from := &net.TCPAddr{IP: net.ParseIP("192.0.2.7"), Port: 4711}
	if _, err := proxyproto.HeaderProxyFromAddrs(2, from, from).WriteTo(&head); err != nil {
		t.Fatal(err)
	}
	c, err := grpc.NewClient("passthrough:///"+s.Addr().String(), grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithContextDialer(func(ctx context.Context, at string) (net.Conn, error) {
			c, err := new(net.Dialer).DialContext(ctx, "tcp", at)
			if err == nil {
				_, err = c.Write(head.Bytes())
			}
			return c, err
		}))
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if _, err := grpc_health_v1.NewHealthClient(c).Check(await.Context(t), new(grpc_health_v1.HealthCheckRequest)); err != nil {
		t.Fatal(err)
	}
	if at := <-s.from; at != from.String() {
		t.Errorf("it comes from %s, want %s", at, from)
	}
	porttest.Prefaced(t, s.Addr().String()).Cut() // without a header
}

func TestAPortOfGRPCSpeaksHTTP2AloneOverTLS(t *testing.T) {
	t.Parallel()
	certs := servers.NewCertificates(t)
	s := serveGRPC(t, portConfig{tls: config.TLS{Cert: certs.ServerCert, Key: certs.ServerKey}})
	cfg := porttest.Trusting(t, certs.CA)
	cfg.NextProtos = []string{"http/1.1"}
	if c, err := tls.Dial("tcp", s.Addr().String(), cfg); err == nil {
		io.WriteString(c, hello+"\r\n") // it may be cut off before
		if status := porttest.Answer(c); status != 0 {
			t.Errorf("HTTP/1.1 is answered %d", status)
		}
		c.Close()
	}
	c, err := grpc.NewClient(s.Addr().String(), grpc.WithTransportCredentials(grpccreds.NewTLS(porttest.Trusting(t, certs.CA))))
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if _, err := grpc_health_v1.NewHealthClient(c).Check(await.Context(t), new(grpc_health_v1.HealthCheckRequest)); err != nil || s.url() != "grpcs://"+s.Addr().String() {
		t.Errorf("at %s: %v", s.url(), err)
	}
}
