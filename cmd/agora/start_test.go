package main

import (
	"strings"
	"testing"
	"time"

	"github.com/agora-relay/agora/internal/await"
	"github.com/agora-relay/agora/internal/servers"
)

func TestAnEdgeThatCannotStartSaysWhatToDo(t *testing.T) {
	t.Parallel()
	redis := "redis://" + servers.Redis(t).Addr()
	used := servers.StartNATS(t, servers.NATSConfig{}).URL()
	serves(t, "--redis.url", redis, "--nats.url", used) // makes the streams: one shard, in files
	limited := `accounts { A: { jetstream: { max_file: 100MB, max_mem: 0 }, users: [{user: joe, password: a}] } }`
	without := `accounts { A: { users: [{user: joe, password: a}] } }`
	denied := `accounts { A: { jetstream: enabled, users: [{user: joe, password: a, permissions: { publish: ["agora.>"], subscribe: [">"] }}] } }`
	joe := []string{"--nats.user", "joe", "--nats.password", "a"}
	for about, c := range map[string]struct {
		nats  *servers.NATSConfig // nil: the one with streams
		flags []string
		want  []string
		waits bool // until start.timeout is over, as what is not there may come
	}{
		"three replicas on one server": {&servers.NATSConfig{}, []string{"--nats.replicas", "3"}, []string{"at least 3 NATS servers", "nats.replicas to 1"}, false},
		"more bytes than the account":  {&servers.NATSConfig{More: limited}, joe, []string{"268435456 bytes", "lower mailbox.shard-bytes"}, false},
		"more bytes than the server":   {&servers.NATSConfig{MaxStore: "100MB"}, nil, []string{"268435456 bytes", "lower mailbox.shard-bytes"}, false},
		"another number of shards":     {nil, []string{"--nats.shards", "2"}, []string{"1 shards and 2 are configured", "set nats.shards back"}, false},
		"other storage":                {nil, []string{"--nats.storage", "memory"}, []string{"file storage and memory", "set nats.storage back"}, false},
		"frames beyond max_payload":    {&servers.NATSConfig{MaxPayload: 1 << 20}, nil, []string{"1048576 bytes", "1056768", "max_payload", "lower limits.frame"}, false},
		"no JetStream":                 {&servers.NATSConfig{NoJetStream: true}, nil, []string{"JetStream is not enabled", "jetstream block"}, true},
		"no JetStream for the account": {&servers.NATSConfig{More: without}, joe, []string{"JetStream is not enabled for the NATS account"}, false},
		"too few rights":               {&servers.NATSConfig{More: denied}, joe, []string{"may not do", "$JS.API.>"}, true},
		"no NATS":                      {nil, []string{"--nats.url", "nats://joe:a@127.0.0.1:1"}, []string{"no NATS server answers at 127.0.0.1:1: start it"}, true},
		"no Redis":                     {nil, []string{"--redis.url", "redis://127.0.0.1:1"}, []string{"no Redis answers: start it", "127.0.0.1:1"}, true},
	} {
		t.Run(about, func(t *testing.T) {
			t.Parallel()
			at := used
			if c.nats != nil {
				at = servers.StartNATS(t, *c.nats).URL()
			}
			args := append([]string{"--redis.url", redis, "--nats.url", at}, c.flags...)
			if !c.waits {
				refuses(t, c.want, args...)
				return
			}
			for wait := 500 * time.Millisecond; ; wait *= 4 { // a busy machine may need more of it to see what is wrong
				told := refusal(t, append(args, "--start.timeout", wait.String())...)
				lacks := missing(told, c.want)
				if lacks == "" {
					return
				}
				if wait > await.Long {
					t.Fatalf("it said %swant %q in it", told, lacks)
				}
			}
		})
	}
}

func TestAnEdgeWaitsForItsServersToStart(t *testing.T) {
	t.Parallel()
	r := servers.Redis(t)
	r.Stop()
	e := launch(t, append(alone, "--nats.url", embedded(t), "--redis.url", "redis://"+r.Addr())...)
	await.True(t, "the edge waits", func() bool { return strings.Contains(e.stderr.String(), "waiting") || len(e.status) > 0 })
	r.Start()
	e.ready()
}

func TestAnEdgeThatIsAskedToEndWhileItStartsEndsWell(t *testing.T) {
	t.Parallel()
	e := launch(t, append(alone, "--nats.url", "nats://127.0.0.1:1", "--redis.url", "redis://127.0.0.1:1")...)
	if status := e.ended(); status != 0 {
		t.Errorf("agora edge ended with %d: %s", status, e.stderr)
	}
}

func TestAStreamDeletedByHandComesBackAndCarriesMessages(t *testing.T) {
	t.Parallel()
	nats := servers.StartNATS(t, servers.NATSConfig{})
	e := launch(t, append(alone, "--nats.url", nats.URL(), "--redis.url", "redis://"+servers.Redis(t).Addr())...).ready()
	a := connect(t, e.public+"?agent_id=alice")
	a.hear("agent.registered")
	if n := nats.DeleteStreams(t); n != 4 {
		t.Fatalf("%d streams, want 4", n)
	}
	a.say(`{"type":"send","to":"alice","payload":"after"}`)
	for {
		_, b, err := a.ReadMessage()
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(string(b), `"payload":"after"`) {
			break
		}
	}
}
