package host

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/agora-relay/agora/client"
	"github.com/agora-relay/agora/mcp/inbox"
)

// Waiting is what waits for an agent and was not acknowledged.
type Waiting struct {
	Agent    string    `json:"agent"`
	Messages []Summary `json:"messages"` // the first of them
	More     int       `json:"more,omitempty"`
}

// Summary is a message in a line.
type Summary struct {
	Seq  uint64 `json:"seq"`
	From string `json:"from"`
	Kind string `json:"kind"` // message, request or reply
	Text string `json:"text"` // its beginning
}

const (
	maxSummaries = 20
	maxSummary   = 160             // bytes of a message's text
	socketTime   = 2 * time.Second // for a host to answer at its socket
	quietTime    = 300 * time.Millisecond
)

// summarize makes a list of messages short.
func summarize(agent string, items []inbox.Item) Waiting {
	w := Waiting{Agent: agent, Messages: []Summary{}}
	for _, it := range items {
		if len(w.Messages) == maxSummaries {
			w.More++
			continue
		}
		text, next := cut(strings.Join(strings.Fields(textOf(it)), " "), 0, maxSummary)
		if next > 0 {
			text += "…"
		}
		w.Messages = append(w.Messages, Summary{it.Seq, it.From, kindOf(it), text})
	}
	return w
}

// Socket returns the path at which the host of an agent of a cluster, whose edges are named by urls, is asked on this
// machine. The directory is the user's own, and is made where it is not there; an error where somebody else may write
// to it.
func Socket(urls, agent string) (string, error) {
	dir := filepath.Join(cmp.Or(os.Getenv("XDG_RUNTIME_DIR"), os.TempDir()), fmt.Sprintf("agora-%d", os.Getuid()))
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return "", err
	}
	info, err := os.Lstat(dir)
	if err != nil {
		return "", err
	}
	if !info.IsDir() || !own(info) {
		return "", fmt.Errorf("%s is not a directory of this user alone", dir)
	}
	sum := sha256.Sum256([]byte(urls + "\x00" + agent))
	return filepath.Join(dir, fmt.Sprintf("%x.sock", sum[:8])), nil
}

// answerAt has the one who connects to a socket told what waits, until the function that it returns is called. Where it
// can't, it says so in the log: then the host is not asked.
func (h *Host) answerAt(ctx context.Context, path string) (stop func()) {
	os.Remove(path) // of a process that is no more: this one is the agent now
	var lc net.ListenConfig
	l, err := lc.Listen(ctx, "unix", path)
	if err != nil {
		h.cfg.Log.Warn("hooks can't ask this host what waits", "err", err)
		return func() {}
	}
	var work sync.WaitGroup
	work.Go(func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			conn.SetDeadline(time.Now().Add(socketTime))
			// Anyone who asks and does not read has gone.
			_ = json.NewEncoder(conn).Encode(summarize(h.cfg.Client.Agent, h.inbox.Peek()))
			conn.Close()
		}
	})
	return func() {
		l.Close()
		work.Wait()
	}
}

// AskHost asks the host at a socket what waits. An error that is [os.ErrNotExist] where there is no host.
func AskHost(ctx context.Context, path string) (w Waiting, err error) {
	ctx, cancel := context.WithTimeout(ctx, socketTime)
	defer cancel()
	var d net.Dialer
	conn, err := d.DialContext(ctx, "unix", path)
	if err != nil {
		return w, errors.Join(os.ErrNotExist, err)
	}
	defer conn.Close()
	conn.SetDeadline(time.Now().Add(socketTime))
	err = json.NewDecoder(io.LimitReader(conn, 1<<20)).Decode(&w)
	return w, err
}

// Look connects as the agent, for as long as it takes to see what waits, and acknowledges nothing. It is for when no
// host is the agent: AGENT_EXISTS where another connection is.
func Look(ctx context.Context, cfg client.Config) (Waiting, error) {
	c, err := client.Dial(ctx, cfg)
	if err != nil {
		return Waiting{}, err
	}
	defer c.Close()
	ctx, cancel := context.WithCancel(ctx)
	var work sync.WaitGroup
	defer work.Wait()
	defer cancel()
	b := inbox.New(inbox.Config{})
	work.Go(func() { _ = b.Run(ctx, c) }) // it ends with ctx
	var last uint64
	for {
		quiet, done := context.WithTimeout(ctx, quietTime)
		err := b.Wait(quiet, last)
		done()
		items := b.Peek()
		if err != nil || len(items) == 0 {
			return summarize(cfg.Agent, items), nil
		}
		last = items[len(items)-1].Seq
	}
}
