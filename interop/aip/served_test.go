//go:build interop

package aip

import (
	"bufio"
	"context"
	"strings"
	"sync"
	"testing"

	"github.com/agora-relay/agora/internal/await"
)

// serves has the program serve an agent and a toolbox, registered at edges, until the test is over, and returns what
// their ids end in.
func (p program) serves(t *testing.T, edges []string) (tag string) {
	t.Helper()
	tag = tagOf(t) + "-" + p.language
	p.begins(t, "served", tag, edges)
	return tag
}

// isGateway has the program be a gateway, with an agent and a toolbox, until the test is over, and returns its address,
// and what their ids end in.
func (p program) isGateway(t *testing.T) (address, tag string) {
	t.Helper()
	tag = tagOf(t) + "-" + p.language
	return p.begins(t, "gateway", tag, nil), tag
}

// begins has the program do something until the test is over. It returns what the program says behind "ready".
func (p program) begins(t *testing.T, what, tag string, edges []string) string {
	t.Helper()
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	cmd, said := p.command(ctx, what, tag, "none", edges)
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(out)
	lines.Scan()
	more, ready := strings.CutPrefix(lines.Text(), "ready")
	t.Cleanup(func() {
		in.Close() // which ends it
		ended := make(chan error, 1)
		var waiting sync.WaitGroup
		waiting.Go(func() { ended <- cmd.Wait() })
		defer waiting.Wait()
		defer cancel()
		if err := await.Recv(t, p.language+" ends", ended); err != nil || !ready {
			t.Errorf("%s in %s: %v\n%s", what, p.language, err, said)
		}
	})
	if !ready {
		t.FailNow()
	}
	return strings.TrimSpace(more)
}
