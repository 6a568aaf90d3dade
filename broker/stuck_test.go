package broker

import (
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/agora-relay/agora"
	"github.com/agora-relay/agora/internal/await"
)

// A server that is stopped takes what sockets hold and then nothing. The client's writing waits for it, under a lock that whoever
// has something to say needs as well.
func TestAServerThatTakesNothingIsLeft(t *testing.T) {
	t.Parallel()
	s := testServer(t, 1)
	c := testCable(t, s)
	b := testBroker(t, s, func(cfg *Config) { cfg.URL, cfg.write = c.Addr(), time.Second })
	const lanes = 16 // of 700 KB each: more than sockets hold
	results := make(chan Result, lanes)
	var all [lanes]*Lane
	for k := range all {
		all[k] = b.Lane(LaneConfig{From: "alice", Session: "s1", Epoch: 1, To: agora.ToAgent("default", agora.AgentID(fmt.Sprint("bob-", k)))})
		defer all[k].Close()
		store(t, all[k], text("before"))
	}
	c.Stick()
	var puts sync.WaitGroup
	defer puts.Wait()
	for _, l := range all {
		puts.Go(func() { l.Put(text(strings.Repeat("x", 700<<10)), func(r Result) { results <- r }) })
	}
	for range all {
		if r := await.Recv(t, "an answer, by another connection", results); r.Err != nil {
			t.Error(r.Err)
		}
	}
}
