package main

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/agora-relay/agora/client/iat"
	"github.com/agora-relay/agora/internal/agoratest"
	"github.com/agora-relay/agora/internal/await"
	"github.com/agora-relay/agora/internal/party"
)

// built builds both programs, and returns where they are.
func built(t *testing.T) (dir string) {
	t.Helper()
	dir = t.TempDir()
	if out, err := exec.Command("go", "build", "-o", dir, ".", "../subagent").CombinedOutput(); err != nil {
		t.Fatalf("go build: %v\n%s", err, out)
	}
	return dir
}

// approve approves of the first thing that anybody asks approval for.
func approve(t *testing.T, edge string) {
	t.Helper()
	operator, err := iat.New(iat.Config{URLs: []string{edge}})
	if err != nil {
		t.Fatal(err)
	}
	defer operator.Close()
	for a, err := range operator.WatchApprovals(await.Context(t), iat.ApprovalQuery{State: iat.Pending}) {
		if err == nil {
			_, err = operator.Decide(await.Context(t), a.ID, iat.Decision{Approved: true})
		}
		if err != nil {
			t.Fatal(err)
		}
		return
	}
}

func TestTheHostAndTheSubAgentTidyADirectory(t *testing.T) {
	t.Parallel()
	c := agoratest.Start(t, agoratest.Options{Approvals: true, Doors: []func(agoratest.Entry) (agoratest.Opened, error){party.IAT().Open}})
	dir, root := built(t), t.TempDir()
	for _, name := range []string{"guide.md", "guide.md.bak"} {
		if err := os.WriteFile(filepath.Join(root, name), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	sub := exec.CommandContext(t.Context(), filepath.Join(dir, "subagent"), "-url", c.HTTP(1))
	var said bytes.Buffer
	sub.Stdout, sub.Stderr = &said, &said
	if err := sub.Start(); err != nil {
		t.Fatal(err)
	}
	await.True(t, "the sub-agent", func() bool {
		_, err := c.Node(0).Config().Presence.Directory.Agent(await.Context(t), "default", "subagent")
		return err == nil
	})
	done := make(chan string, 1)
	host := exec.CommandContext(await.Context(t), filepath.Join(dir, "host"), "-url", c.HTTP(0), "-root", root, "tidy", "the", "docs")
	go func() {
		out, err := host.CombinedOutput()
		if err != nil {
			out = append(out, err.Error()...)
		}
		done <- string(out)
	}()
	approve(t, c.HTTP(2))
	want := []string{"* subagent thinks: which files are backups?", "looking at guide.md.bak\ndeleted guide.md.bak\n", "done: tidy the docs: done"}
	got := await.Recv(t, "the end of the host", done)
	for _, w := range want {
		if !strings.Contains(got, w) {
			t.Errorf("the host says %q, want %q in it", got, w)
		}
	}
	if left, _ := filepath.Glob(filepath.Join(root, "*")); len(left) != 1 {
		t.Errorf("%q are left, want guide.md alone", left)
	}
	if err := sub.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	if err := sub.Wait(); err != nil {
		t.Errorf("the sub-agent ends with %v: %s", err, said.String())
	}
}
