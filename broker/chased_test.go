package broker

import (
	"bytes"
	"context"
	"net"
	"testing"

	"github.com/nats-io/nats.go"

	"github.com/agora-relay/agora"
	"github.com/agora-relay/agora/broker/record"
	"github.com/agora-relay/agora/broker/scan"
	"github.com/agora-relay/agora/internal/await"
)

// asking is a connection that does something before each question for the last record of a subject leaves.
type asking struct {
	net.Conn
	before func()
}

func (c *asking) Write(p []byte) (int, error) {
	if bytes.Contains(p, []byte("STREAM.MSG.GET")) && bytes.Contains(p, []byte("last_by_subj")) {
		c.before()
	}
	return c.Conn.Write(p)
}

// dialAsking connects by such connections.
type dialAsking func()

func (before dialAsking) Dial(network, address string) (net.Conn, error) {
	c, err := (&net.Dialer{}).Dial(network, address)
	if err != nil {
		return nil, err
	}
	return &asking{c, before}, nil
}

// Where others say something whenever the log is asked for its end, a scan of a lane comes to its own end nevertheless.
func TestAScanWaitsForNothingThatOthersStoreMeanwhile(t *testing.T) {
	t.Parallel()
	srv := testServer(t, 1)
	other := testBroker(t, srv, nil).Lane(lane("other", 1, false))
	defer other.Close()
	n := uint64(0)
	says := func() {
		n++
		store(t, other, numbered(n, text("x")))
	}
	b := testBroker(t, srv, func(c *Config) { c.Options = append(c.Options, nats.SetCustomDialer(dialAsking(says))) })
	l := b.Lane(lane("s1", 1, false))
	defer l.Close()
	store(t, l, numbered(1, text("mine")))
	ctx, cancel := context.WithTimeout(t.Context(), await.Long)
	defer cancel()
	found := 0
	err := scan.NewLaneScan(b.scanner, l.cfg.From, "s1", l.cfg.To).Run(ctx, func(_ record.Origin, _ uint64, parts []agora.Message) error {
		found += len(parts)
		return nil
	})
	if err != nil || found != 1 {
		t.Errorf("found %d of one part: %v", found, err)
	}
}
