package main

import (
	"bytes"
	"context"
	"io"
	"strings"
	"testing"

	"github.com/agora-relay/agora/cmd/agora/exit"
	"github.com/agora-relay/agora/internal/await"
)

// TestAnEdgeOfDevIsKilledAndStartedAgain holds what the README has people try: an edge dies in the middle of a stream,
// and nothing is missing.
func TestAnEdgeOfDevIsKilledAndStartedAgain(t *testing.T) {
	t.Parallel()
	d := startDev(t, "--edges", "2")
	tells := func(admin, verb, n, want string, status int) {
		t.Helper()
		var out bytes.Buffer
		if got := run(t.Context(), []string{"dev", verb, n, "--admin", admin}, nil, &out, &out); got != status || !strings.Contains(out.String(), want) {
			t.Errorf("agora dev %s %s ends with %d, %s; want %d, %q", verb, n, got, &out, status, want)
		}
	}
	c := &verbs{t: t, url: d.public[1] + "," + d.public[0]}
	ctx, stop := context.WithCancel(t.Context())
	listen := c.start(ctx, strings.NewReader(""), "listen", "bob", "--raw")
	c.present("bob")
	in, feed := io.Pipe()
	stream := c.start(t.Context(), in, "stream", "--from", "alice", "--to", "bob")
	want := ""
	says := func(text string) {
		t.Helper()
		io.WriteString(feed, text)
		want += text
		await.True(t, text, func() bool { return listen.out.String() == want })
	}
	says("one ")
	for _, n := range []string{"1", "0"} { // whichever they are at
		tells(d.admin[0], "kill", n, "edge-"+n+" is killed", 0)
		tells(d.admin[0], "kill", n, "does not run", exit.Error)
		says("two ")
		tells(d.admin[1], "start", n, "edge-"+n+" runs again", 0)
		tells(d.admin[1], "start", n, "edge-"+n+" runs", exit.Error)
		says("three ")
	}
	tells(d.admin[0], "kill", "2", "there is no edge 2: edges are 0 to 1", exit.NotFound)
	tells(d.admin[0], "kill", "x", "want the number of an edge", exit.Error)
	feed.Close()
	if r := stream.wait(); r.status != 0 {
		t.Errorf("stream: %+v", r)
	}
	stop()
	if r := listen.wait(); r.status != 0 {
		t.Errorf("listen: %+v", r)
	}
	if _, ready := fetch(t, d.admin[0]+"/readyz"); ready != "ready\n" {
		t.Errorf("edge-0 is %q, want ready", ready)
	}
}
