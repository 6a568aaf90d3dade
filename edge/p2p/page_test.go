package p2p_test

import (
	"encoding/json"
	"io"
	"net/http"
	"os"
	"strings"
	"testing"

	"github.com/libp2p/go-libp2p/core/peer"
	"github.com/libp2p/go-libp2p/p2p/protocol/circuitv2/client"

	"github.com/agora-relay/agora/edge"
	"github.com/agora-relay/agora/internal/agoratest"
	"github.com/agora-relay/agora/internal/await"
	"github.com/agora-relay/agora/wire/p2p"
)

// TestTheGoLinesOfThePageStandHere holds that docs/libp2p.md has no line of Go that is not run below.
func TestTheGoLinesOfThePageStandHere(t *testing.T) {
	page, err := os.ReadFile("../../docs/libp2p.md")
	if err != nil {
		t.Fatal(err)
	}
	here, err := os.ReadFile("page_test.go")
	if err != nil {
		t.Fatal(err)
	}
	lines := 0
	for _, block := range strings.Split(string(page), "```go\n")[1:] {
		block, _, _ = strings.Cut(block, "```")
		for line := range strings.Lines(block) {
			code, _, _ := strings.Cut(line, " //")
			if code = strings.TrimSpace(code); !strings.Contains(string(here), "\n\t"+code+"\n") {
				t.Errorf("docs/libp2p.md has a line that is not run here: %s", code)
			}
			lines++
		}
	}
	if lines == 0 {
		t.Error("docs/libp2p.md has no lines of Go")
	}
}

func TestTheGoLinesOfThePageHandOff(t *testing.T) {
	t.Parallel()
	s := open(t, setup{Options: agoratest.Options{Edges: 2}})
	s.works(1, "plain")
	ctx, host, address := await.Context(t), s.enter(), s.door(0).Addresses()[0]

	edge, _ := peer.AddrInfoFromString(address)
	host.Connect(ctx, *edge)
	client.Reserve(ctx, host, *edge)
	stream, _ := host.NewStream(ctx, edge.ID, "/ai-agent/handoff/1.0.0")
	io.WriteString(stream, `{"method":"POST","path":"/agents/plain/greet/{name}","params":{"name":"Ada"}}`)
	stream.CloseWrite()
	answer, _ := io.ReadAll(stream)

	if want := `{"method":"POST","path":"/greet/{name}","params":{"name":"Ada"}}`; string(answer) != want {
		t.Errorf("the answer is %q, want %q", answer, want)
	}
	if s.door(0).Stats().Reservations.Load() == 0 {
		t.Error("no place is reserved")
	}
}

func TestTheGoLinesOfThePageProveWhoAPeerIs(t *testing.T) {
	t.Parallel()
	s := open(t, setup{Options: agoratest.Options{Node: edge.Config{Auth: folk{}}}})
	const token = "t/plain/plain"
	status, body := s.asked(0, token, http.MethodGet, "/p2p", nil)
	var list struct {
		Tenant string
		Edges  []struct {
			PeerID string `json:"peer_id"`
		}
		Now int64
	}
	if err := json.Unmarshal([]byte(body), &list); err != nil || status != http.StatusOK {
		t.Fatal(status, body, err)
	}
	host := s.enter()
	key := host.key

	b := p2p.Binding{Tenant: list.Tenant, Agent: "plain", Edge: list.Edges[0].PeerID, Peer: host.ID().String(), Time: list.Now}
	signature, _ := key.Sign(b.Statement())
	proof := p2p.Proof{Edge: b.Edge, Time: b.Time, Signature: signature}

	if status, said := s.claims(0, token, registration{Agent: "plain", Peer: b.Peer, Proof: proof}); status != http.StatusOK || !said.Bound {
		t.Errorf("%d, %+v: the peer is not bound", status, said)
	}
}
