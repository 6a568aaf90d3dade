package p2p_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
	"testing"

	"github.com/libp2p/go-libp2p/core/peer"
	"github.com/libp2p/go-libp2p/p2p/protocol/circuitv2/client"

	"github.com/agora-relay/agora/edge/p2p"
	"github.com/agora-relay/agora/internal/agoratest"
	"github.com/agora-relay/agora/internal/await"
	"github.com/agora-relay/agora/internal/p2phost"
)

// crowdAt is set where this program is to be a crowd of idle peers: how many, and the edge at which each reserves a
// place.
const crowdAt = "AGORA_TEST_CROWD"

// beCrowd is what such a program does, until its input ends.
func beCrowd(said string) error {
	count, at, _ := strings.Cut(said, " ")
	n, err := strconv.Atoi(count)
	if err != nil {
		return err
	}
	edge, err := peer.AddrInfoFromString(at)
	if err != nil {
		return err
	}
	for range n {
		key, err := p2phost.NewKey()
		if err != nil {
			return err
		}
		h, err := p2phost.New(p2phost.Config{Key: key, Reserves: true})
		if err != nil {
			return err
		}
		if _, err := client.Reserve(context.Background(), h, *edge); err != nil {
			return err
		}
	}
	fmt.Println("reserved")
	_, err = io.Copy(io.Discard, os.Stdin)
	return err
}

// BenchmarkIdlePeer tells what a peer takes of its edge that has reserved a place and is quiet: heap and stacks, once
// garbage is collected.
func BenchmarkIdlePeer(b *testing.B) {
	const peers = 500
	s := open(b, setup{Options: agoratest.Options{Edges: 1}, door: p2p.Config{Relay: p2p.Relay{PerIP: peers}}})
	at := s.door(0).Addresses()[0]
	inUse := func() uint64 {
		var m runtime.MemStats
		runtime.GC()
		runtime.GC()
		runtime.ReadMemStats(&m)
		return m.HeapInuse + m.StackInuse
	}
	before := inUse()
	crowd := exec.Command(os.Args[0])
	crowd.Env = append(os.Environ(), fmt.Sprintf("%s=%d %s", crowdAt, peers, at))
	crowd.Stderr = os.Stderr
	in, err := crowd.StdinPipe()
	if err != nil {
		b.Fatal(err)
	}
	out, err := crowd.StdoutPipe()
	if err == nil {
		err = crowd.Start()
	}
	if err != nil {
		b.Fatal(err)
	}
	if line, err := bufio.NewReader(out).ReadString('\n'); line != "reserved\n" {
		b.Fatalf("the crowd says %q, %v", line, err)
	}
	await.True(b, "all have a place", func() bool { return s.door(0).Stats().Reservations.Load() == peers })
	b.ReportMetric(float64(inUse()-before)/peers/1024, "KiB/peer")
	for range b.N {
	}
	if err := in.Close(); err != nil {
		b.Fatal(err)
	}
	if err := crowd.Wait(); err != nil {
		b.Fatal(err)
	}
}
