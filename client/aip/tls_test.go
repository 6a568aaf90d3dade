package aip

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"math/big"
	"net"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	reflectionpb "google.golang.org/grpc/reflection/grpc_reflection_v1"

	"github.com/agora-relay/agora/internal/await"
)

// certificates returns what serves at 127.0.0.1 with TLS, and what connects to it.
func certificates(t *testing.T) (server, client *tls.Config) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(24 * time.Hour), IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, IsCA: true, BasicConstraintsValid: true,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	pool := x509.NewCertPool()
	pool.AddCert(cert)
	return &tls.Config{Certificates: []tls.Certificate{{Certificate: [][]byte{der}, PrivateKey: key}}}, &tls.Config{RootCAs: pool}
}

func TestAllOfItWorksWithTLS(t *testing.T) {
	t.Parallel()
	server, client := certificates(t)
	g := startGateway(t, GatewayConfig{TLS: client, ServeTLS: server})
	cfg := config(g, "bob")
	cfg.TLS, cfg.ServeTLS = client, server
	startAgent(t, cfg, echo)
	cfg.ID, cfg.Listen = "box", ""
	startToolbox(t, cfg, map[string]func(context.Context, string) (any, error){"t": func(context.Context, string) (any, error) { return "done", nil }})
	cfg.ID = "alice"
	alice, ctx := newAgent(t, cfg), await.Context(t)
	if got, err := answers(alice.askCall(ctx, "bob")); err != nil || len(got) != 2 {
		t.Errorf("bob answers %q, %v", got, err)
	}
	if resp, err := alice.CallTool(ctx, "box", "t", nil); err != nil || TextOf(resp.GetContent()) != "done" {
		t.Errorf("the tool answers %v, %v", resp, err)
	}
	for _, err := range newAgent(t, config(g, "plain")).Ask(ctx, "bob") {
		isStatus(t, "who has no TLS", err, codes.Unavailable, "")
	}
}

func TestAGatewayDescribesItself(t *testing.T) {
	t.Parallel()
	g := startGateway(t, GatewayConfig{})
	conn, ctx := raw(t, g.Address()), await.Context(t)
	health, err := healthpb.NewHealthClient(conn).Check(ctx, &healthpb.HealthCheckRequest{})
	if err != nil || health.GetStatus() != healthpb.HealthCheckResponse_SERVING {
		t.Errorf("its health is %v, %v", health, err)
	}
	s, err := reflectionpb.NewServerReflectionClient(conn).ServerReflectionInfo(ctx)
	if err != nil {
		t.Fatal(err)
	}
	const service = "grpc_service.GatewayService"
	if err := s.Send(&reflectionpb.ServerReflectionRequest{MessageRequest: &reflectionpb.ServerReflectionRequest_FileContainingSymbol{FileContainingSymbol: service}}); err != nil {
		t.Fatal(err)
	}
	resp, err := s.Recv()
	if err != nil || len(resp.GetFileDescriptorResponse().GetFileDescriptorProto()) == 0 {
		t.Errorf("%s is described by %v, %v", service, resp, err)
	}
	s.CloseSend()
	s.Recv()
}
