package host_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/agora-relay/agora"
	"github.com/agora-relay/agora/client"
	"github.com/agora-relay/agora/internal/await"
	"github.com/agora-relay/agora/mcp/host"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

func TestWhatWaitsIsToldByTheHostAndWithoutOneByLooking(t *testing.T) {
	t.Setenv("XDG_RUNTIME_DIR", t.TempDir())
	c := startCluster(t)
	path, err := host.Socket("urls", "ann")
	if err != nil {
		t.Fatal(err)
	}
	ctx := await.Context(t)
	if _, err := host.AskHost(ctx, path); !errors.Is(err, os.ErrNotExist) {
		t.Fatalf("without a host: %v", err)
	}
	ann := startModel(t, c.URLs(), "ann", func(cfg *host.Config, _ *mcp.ClientOptions) { cfg.Socket = path })
	use[mail](ann, "agora_inbox", nil)
	bob := dial(t, c, "bob")
	for range 25 {
		if err := bob.Send(ctx, "ann", object{"text": "hello"}); err != nil {
			t.Fatal(err)
		}
	}
	await.True(t, "the messages", func() bool {
		w, err := host.AskHost(ctx, path)
		return err == nil && w.Agent == "ann" && len(w.Messages) == 20 && w.More == 5 && w.Messages[0].Text == "hello"
	})
	if _, err := host.Look(ctx, client.Config{URLs: c.URLs(), Agent: "ann"}); agora.AsError(err).Code != agora.AgentExists {
		t.Fatalf("beside a host: %v", err)
	}
	ann.kill()
	for range 2 { // it takes nothing
		await.True(t, "a look into the mailbox", func() bool {
			w, err := host.Look(ctx, client.Config{URLs: c.URLs(), Agent: "ann"})
			return err == nil && len(w.Messages)+w.More == 25
		})
	}
}

func TestASocketLiesInADirectoryOfTheUserAlone(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("XDG_RUNTIME_DIR", dir)
	path, err := host.Socket("urls", "ann")
	if err != nil {
		t.Fatal(err)
	}
	if other, err := host.Socket("urls", "ben"); err != nil || other == path {
		t.Fatalf("two agents at %s: %v", other, err)
	}
	if err := os.Chmod(filepath.Dir(path), 0o777); err != nil {
		t.Fatal(err)
	}
	if _, err := host.Socket("urls", "ann"); err == nil {
		t.Fatal("anybody may write there")
	}
}

func TestACallThatIsCancelledKeepsNoAnswerFromBeingAcknowledged(t *testing.T) {
	t.Parallel()
	c := startCluster(t)
	ann := startModel(t, c.URLs(), "ann", nil)
	bob := dial(t, c, "bob")
	use[mail](ann, "agora_inbox", nil)
	waiting, cancel := context.WithCancel(await.Context(t))
	cancelled := make(chan struct{})
	go func() {
		defer close(cancelled)
		_, _ = ann.session.CallTool(waiting, &mcp.CallToolParams{Name: "agora_inbox", Arguments: object{"wait_s": 50}}) // it is cancelled
	}()
	cancel()
	await.Recv(t, "the cancel", cancelled)
	await.True(t, "an answer that is acknowledged", func() bool { // the cancel may be on its way for a while
		go func() {
			if q, err := bob.Receive(await.Context(t)); err == nil {
				_ = q.Reply(await.Context(t), object{"text": "42"}) // it is missed if it fails
			}
		}()
		use[object](ann, "agora_ask", object{"to": "bob", "text": "?"})
		use[mail](ann, "agora_inbox", nil) // the answer was seen
		ann.stop()
		ann = startModel(t, c.URLs(), "ann", nil)
		again := use[mail](ann, "agora_inbox", object{"wait_s": 0.5}).Messages
		for _, m := range again {
			use[mail](ann, "agora_inbox", object{"ack": m.Seq})
		}
		return len(again) == 0
	})
}
