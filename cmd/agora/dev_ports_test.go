package main

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"strconv"
	"strings"
	"testing"

	"github.com/agora-relay/agora/internal/await"
	"github.com/agora-relay/agora/internal/servers"
)

// TestAllPortsOfDevShift holds that --port has every port begin there, and that those which are taken make way.
func TestAllPortsOfDevShift(t *testing.T) {
	t.Parallel()
	first := blockOfPorts(t)
	taken, err := net.Listen("tcp", fmt.Sprint("127.0.0.1:", first+1)) // where edge 1 would have agents
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { taken.Close() })
	ctx, stop := context.WithCancel(t.Context())
	var out, log output
	ended := make(chan int, 1)
	go func() {
		ended <- run(ctx, []string{"dev", "--edges", "2", "--port", strconv.Itoa(first)}, strings.NewReader(""), &out, &log)
	}()
	await.True(t, "ready", func() bool { return strings.Contains(out.String(), "agora --help") || len(ended) > 0 })
	for _, want := range []string{
		fmt.Sprintf("edge-0  ws://127.0.0.1:%d/ws  grpc://127.0.0.1:%d  /ip4/127.0.0.1/tcp/%d/", first, first+200, first+300),
		fmt.Sprintf("admin http://127.0.0.1:%d\n", first+100),
		fmt.Sprintf("edge-1  ws://127.0.0.1:%d/ws  grpc://127.0.0.1:%d  /ip4/127.0.0.1/tcp/%d/", first+2, first+201, first+301),
		fmt.Sprintf("agora listen --url ws://127.0.0.1:%d alice", first),
	} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("it says %s\nwant %q", &out, want)
		}
	}
	if want := fmt.Sprintf("setting=addr taken=127.0.0.1:%d used=127.0.0.1:%d", first+1, first+2); !strings.Contains(log.String(), want) {
		t.Errorf("it tells %s\nwant %q", &log, want)
	}
	stop()
	if status := await.Recv(t, "the end", ended); status != 0 {
		t.Errorf("it ended with %d: %s", status, &log)
	}
}

// blockOfPorts returns a port from which on those that a test of two edges needs are free.
func blockOfPorts(t *testing.T) int {
	t.Helper()
	first := servers.Ports(t, 1)
	for ; ; first += 7 {
		free := true
		for _, n := range []int{0, 1, 2, 100, 101, 200, 201, 300, 301} {
			l, err := net.Listen("tcp", fmt.Sprint("127.0.0.1:", first+n))
			if free = free && err == nil; err == nil {
				l.Close()
			}
		}
		if free {
			return first
		}
	}
}

// TestAddressesOfPeersAreWrittenEitherWay holds that --p2p-addr takes HOST:PORT and a multiaddress in each command that
// has it.
func TestAddressesOfPeersAreWrittenEitherWay(t *testing.T) {
	t.Parallel()
	root := newRoot()
	for _, cmd := range root.Commands() {
		if cmd.Flags().Lookup("p2p-addr") == nil {
			continue
		}
		more := map[string][]string{
			"edge": {"--auth", "none", "--addr", "256.0.0.1:1"}, "dev": {"--addr", "256.0.0.1:1"},
			"sidecar": {"--agent-url", "http://127.0.0.1:1", "--log.level", "loud"},
		}[cmd.Name()]
		if more == nil {
			t.Errorf("agora %s has --p2p-addr: have it here", cmd.Name())
		}
		for _, addr := range []string{"127.0.0.1:0", ":0", "localhost:0", "[::1]:0", "/ip4/127.0.0.1/tcp/0", "/ip6/::1/tcp/0", "/ip4/127.0.0.1/tcp/0/ws", "none"} {
			var out bytes.Buffer
			run(t.Context(), append([]string{cmd.Name(), "--p2p-addr", addr}, more...), strings.NewReader(""), &out, &out)
			if strings.Contains(out.String(), "p2p-addr") || strings.Contains(out.String(), "of the peer") || !strings.Contains(out.String(), "256.0.0.1") && !strings.Contains(out.String(), "loud") {
				t.Errorf("agora %s --p2p-addr %s: %s", cmd.Name(), addr, &out)
			}
		}
	}
}
