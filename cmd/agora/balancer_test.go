package main

import (
	"os"
	"regexp"
	"testing"
	"time"
)

// The balancer of docker-compose.yml passes on answers that last, as they come.
func TestTheBalancerLetsAnswersLast(t *testing.T) {
	page, err := os.ReadFile("../../deploy/haproxy/haproxy.cfg")
	if err != nil {
		t.Fatal(err)
	}
	heartbeat, err := newEdge().Flags().GetDuration("session.heartbeat")
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
	wait, err := newEdge().Flags().GetDuration("iat.max-wait")
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
