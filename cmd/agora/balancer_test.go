package main

import (
	"github.com/agora-relay/agora/cmd/agora/serve"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"
)

// The balancer of docker-compose.yml passes on answers that last, as they come.
func TestTheBalancerLetsAnswersLast(t *testing.T) {
	page, err := os.ReadFile("../../deploy/haproxy/haproxy.cfg")
	if err != nil {
		t.Fatal(err)
	}
	heartbeat, err := serve.NewEdge().Flags().GetDuration("session.heartbeat")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"client", "server", "tunnel"} {
		m := regexp.MustCompile(`(?m)^    timeout ` + name + ` +(\S+)`).FindSubmatch(page)
		if m == nil {
			t.Errorf("timeout %s is not set", name)
			continue
		}
		if d, err := time.ParseDuration(string(m[1])); err != nil || d < 2*heartbeat {
			t.Errorf("timeout %s is %v, %v, shorter than two heartbeats", name, d, err)
		}
	}
	if !regexp.MustCompile(`(?m)^    option http-no-delay\b`).Match(page) {
		t.Error("pieces of answers are gathered")
	}
	if regexp.MustCompile(`(?m)^    server .*\bproto h2\b`).Match(page) {
		t.Error("edges are spoken to in HTTP/2, over which there are no WebSockets")
	}
}

// An IAT request that is not answered by events is quiet until it is answered.
func TestTheBalancerWaitsForIATRequests(t *testing.T) {
	page, err := os.ReadFile("../../deploy/haproxy/haproxy.cfg")
	if err != nil {
		t.Fatal(err)
	}
	wait, err := serve.NewEdge().Flags().GetDuration("iat.max-wait")
	if err != nil {
		t.Fatal(err)
	}
	m := regexp.MustCompile(`(?m)^    timeout server +(\S+)`).FindSubmatch(page)
	if m == nil {
		t.Fatal("timeout server is not set")
	}
	if d, err := time.ParseDuration(string(m[1])); err != nil || d <= wait {
		t.Errorf("the balancer waits for %s, %v, and the edge for %v", m[1], err, wait)
	}
}

// gRPC is HTTP/2 with trailers: its connections are passed on as they are, to the port that the edges of
// docker-compose.yml have for it.
func TestTheBalancerPassesGRPCOn(t *testing.T) {
	page, compose := fileOf(t, "../../deploy/haproxy/haproxy.cfg"), fileOf(t, "../../docker-compose.yml")
	port := regexp.MustCompile(`AGORA_GRPC_ADDR: 0\.0\.0\.0:(\d+)`).FindStringSubmatch(compose)
	if port == nil {
		t.Fatal("the edges have no port for gRPC")
	}
	for name, wants := range map[string][]string{
		"frontend aip":      {"mode tcp", "bind :" + port[1]},
		"backend aip-edges": {"mode tcp", "http-check send meth GET uri /readyz", "server edge-1 edge-1:" + port[1], "server edge-2 edge-2:" + port[1], "server edge-3 edge-3:" + port[1]},
	} {
		_, section, _ := strings.Cut(page, "\n"+name+"\n")
		section, _, _ = strings.Cut(section, "\n\n")
		for _, want := range wants {
			if !strings.Contains(section+"\n", "    "+want+"\n") {
				t.Errorf("%s lacks %q:\n%s", name, want, section)
			}
		}
	}
	if want := `"127.0.0.1:` + port[1] + ":" + port[1] + `"`; !strings.Contains(compose, want) || !strings.Contains(compose, "AGORA_AIP_ADVERTISE: 127.0.0.1:"+port[1]) {
		t.Errorf("docker-compose.yml does not publish %s, or edges advertise another place", want)
	}
}
