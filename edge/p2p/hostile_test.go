package p2p_test

import (
	"fmt"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/agora-relay/agora/edge"
	"github.com/agora-relay/agora/edge/dial"
	"github.com/agora-relay/agora/internal/agoratest"
	"github.com/agora-relay/agora/internal/await"
	wire "github.com/agora-relay/agora/wire/p2p"
)

// trap is a server that nobody may reach, and counts who does.
func trap(t *testing.T) (port int, reached *atomic.Int64) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	reached = new(atomic.Int64)
	over := make(chan struct{})
	go func() {
		defer close(over)
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			reached.Add(1)
			c.Close()
		}
	}()
	t.Cleanup(func() {
		l.Close()
		<-over
	})
	return l.Addr().(*net.TCPAddr).Port, reached
}

// Addresses that a peer names are not dialled against the settings, whichever peer is said to be there: not even an
// edge.
func TestNothingIsDialledThatIsDenied(t *testing.T) {
	t.Parallel()
	deny, err := dial.ParseList([]string{"127.0.0.0/8"})
	if err != nil {
		t.Fatal(err)
	}
	s := open(t, setup{Options: agoratest.Options{Edges: 2, Node: edge.Config{Dialer: dial.New(dial.Config{Deny: &deny})}}})
	port, reached := trap(t)
	h := s.enter()
	for _, at := range []string{
		fmt.Sprintf("/ip4/127.0.0.1/tcp/%d", port),
		fmt.Sprintf("/ip4/127.0.0.1/tcp/%d/ws", port),
		fmt.Sprintf("/ip4/127.0.0.1/tcp/%d/p2p/%s/p2p-circuit", port, s.at(1).ID),
		fmt.Sprintf("/ip4/127.0.0.1/tcp/%d/p2p/%s/p2p-circuit/p2p/%s", port, s.enter().ID(), h.ID()),
	} {
		body := fmt.Sprintf(`{"agent_name":"x","peer_id":%q,"addrs":[%q]}`, h.ID(), at)
		if status, answer := s.posts(0, "/register", body); status != http.StatusForbidden {
			t.Errorf("%s is registered: %d %s", at, status, answer)
		}
	}
	if n := reached.Load(); n > 0 {
		t.Errorf("%d connections have reached what is denied", n)
	}
	to := s.enter()
	to.echoes()
	to.reserve(1)
	st, err := s.enter().opens(0, to.ID(), echo)
	if err != nil || string(said(t, st, []byte("x"))) != "x" {
		t.Errorf("edges don't reach each other where they are: %v", err)
	}
}

func TestAPeerSpeaksAsAnAgentForAsLongAsItIsRegistered(t *testing.T) {
	t.Parallel()
	s := open(t, setup{Options: agoratest.Options{Edges: 2, Node: edge.Config{Auth: folk{}}}})
	first, second := s.enter(), s.enter()
	speaks := func(h *host) bool { return !strings.Contains(asks(t, h.edge(1, wire.CardProtocol), ""), `"code":403`) }
	if status := s.registers("t/p/a", "a", first); status != http.StatusOK || !speaks(first) {
		t.Fatalf("registration is %d", status)
	}
	if err := first.Network().ClosePeer(s.at(0).ID); err != nil {
		t.Fatal(err)
	}
	if status := s.registers("t/p/a", "a", second); status != http.StatusOK {
		t.Fatalf("registration of another peer is %d", status)
	}
	await.True(t, "the one before speaks no more", func() bool { return !speaks(first) })
	await.True(t, "the other one does", func() bool { return speaks(second) })
	r, err := http.NewRequestWithContext(await.Context(t), http.MethodDelete, s.HTTP(0)+"/agents/a", nil)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer t/p/a")
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	if status, body := answered(t, resp); status >= 300 {
		t.Fatalf("%d %s", status, body)
	}
	await.True(t, "nor does that once the registration is withdrawn", func() bool { return !speaks(second) })
}
