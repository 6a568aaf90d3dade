package main

import (
	"context"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/agora-relay/agora/internal/await"
)

// TestAListenerThatIsStartedAgainGetsTheStreamWhole holds what the README promises to the one who ends `agora listen`
// in the middle of a stream.
func TestAListenerThatIsStartedAgainGetsTheStreamWhole(t *testing.T) {
	t.Parallel()
	for name, flags := range map[string]string{"for people": "", "raw": "--raw", "json": "--json"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := newCLI(t)
			ctx, interrupt := context.WithCancel(t.Context())
			listen := append([]string{"listen", "bob"}, strings.Fields(flags)...)
			first := c.start(ctx, strings.NewReader(""), listen...)
			c.present("bob")
			in, feed := io.Pipe()
			stream := c.start(t.Context(), in, "stream", "--from", "alice", "--to", "bob")
			io.WriteString(feed, "one ")
			await.True(t, "the beginning", func() bool { return strings.Contains(first.out.String(), "one ") })
			c.ok("", "send", "--from", "carol", "--to", "bob", "between")
			if flags != "--raw" { // which shows one after the other
				await.True(t, "what comes between", func() bool { return strings.Contains(first.out.String(), "between") })
			}
			interrupt()
			if r := first.wait(); r.status != 0 {
				t.Fatalf("listen: %+v", r)
			}
			io.WriteString(feed, "two ")
			again := c.start(t.Context(), strings.NewReader(""), append(listen, "--count", "2")...)
			await.True(t, "the stream", func() bool { return strings.Contains(again.out.String(), "two ") })
			io.WriteString(feed, "three")
			feed.Close()
			if r := stream.wait(); r.status != 0 {
				t.Errorf("stream: %+v", r)
			}
			r := again.wait()
			if r.status != 0 || !strings.Contains(r.stdout, "between") || strings.Contains(r.stderr, "lost") {
				t.Errorf("listen, started again: %+v", r)
			}
			switch flags {
			case "":
				if !strings.Contains(r.stdout, "alice (again): one ") || !strings.Contains(r.stdout, "carol (again): between") || !strings.Contains(r.stdout, "three") {
					t.Errorf("it shows %q, want all of the stream, marked", r.stdout)
				}
			case "--raw":
				if !strings.Contains(r.stdout, "one two three") {
					t.Errorf("it shows %q, want all of the stream", r.stdout)
				}
			case "--json":
				if text := streamed(r.stdout); text != "one two three" || strings.Count(r.stdout, `"redelivered":true`) != 2 {
					t.Errorf("it shows %q, want all of the stream, marked", r.stdout)
				}
			}
		})
	}
}

// streamed returns the text of the chunks among lines of JSON.
func streamed(lines string) (text string) {
	for line := range strings.Lines(lines) {
		_, rest, ok := strings.Cut(line, `"chunk":"`)
		if ok {
			chunk, _, _ := strings.Cut(rest, `"`)
			text += chunk
		}
	}
	return text
}

func TestWhatWasShownIsNotShownAgain(t *testing.T) {
	t.Parallel()
	c := newCLI(t)
	ctx, interrupt := context.WithCancel(t.Context())
	first := c.start(ctx, strings.NewReader(""), "listen", "bob")
	c.present("bob")
	for k := range 2 {
		c.ok("", "send", "--from", "carol", "--to", "bob", fmt.Sprint("letter ", k))
	}
	await.True(t, "the letters", func() bool { return strings.Contains(first.out.String(), "letter 1") })
	interrupt()
	first.wait()
	c.ok("", "send", "--from", "carol", "--to", "bob", "letter 2")
	if r := c.ok("", "listen", "bob", "--count", "1"); r.stdout != "carol: letter 2\n" {
		t.Errorf("listen shows %q, want what it had not shown, unmarked", r.stdout)
	}
}
