package main

import (
	"strings"
	"testing"
	"time"

	"github.com/agora-relay/agora/internal/agoratest"
)

func TestAnEdgeThatCannotStartSaysWhatToDo(t *testing.T) {
	redis := "redis://" + agoratest.Redis(t).Addr()
	used := agoratest.StartNATS(t, agoratest.NATSConfig{}).URL()
	serves(t, "--redis.url", redis, "--nats.url", used) // makes the streams: one shard, in files
	limited := `accounts { A: { jetstream: { max_file: 100MB, max_mem: 0 }, users: [{user: joe, password: a}] } }`
	without := `accounts { A: { users: [{user: joe, password: a}] } }`
	denied := `accounts { A: { jetstream: enabled, users: [{user: joe, password: a, permissions: { publish: ["agora.>"], subscribe: [">"] }}] } }`
	joe := []string{"--nats.user", "joe", "--nats.password", "a"}
	for about, c := range map[string]struct {
		nats  *agoratest.NATSConfig // nil: the one with streams
		flags []string
		want  []string
	}{
		"three replicas on one server": {&agoratest.NATSConfig{}, []string{"--nats.replicas", "3"}, []string{"at least 3 NATS servers", "nats.replicas to 1"}},
		"more bytes than the account":  {&agoratest.NATSConfig{More: limited}, joe, []string{"268435456 bytes", "lower mailbox.shard-bytes"}},
		"more bytes than the server":   {&agoratest.NATSConfig{MaxStore: "100MB"}, nil, []string{"268435456 bytes", "lower mailbox.shard-bytes"}},
		"another number of shards":     {nil, []string{"--nats.shards", "2"}, []string{"1 shards and 2 are configured", "set nats.shards back"}},
		"other storage":                {nil, []string{"--nats.storage", "memory"}, []string{"file storage and memory", "set nats.storage back"}},
		"frames beyond max_payload":    {&agoratest.NATSConfig{MaxPayload: 1 << 20}, nil, []string{"1048576 bytes", "1056768", "max_payload", "lower limits.frame"}},
		"no JetStream":                 {&agoratest.NATSConfig{NoJetStream: true}, []string{"--start.timeout", "3s"}, []string{"JetStream is not enabled", "jetstream block"}},
		"no JetStream for the account": {&agoratest.NATSConfig{More: without}, joe, []string{"JetStream is not enabled for the NATS account"}},
		"too few rights":               {&agoratest.NATSConfig{More: denied}, append(joe, "--start.timeout", "3s"), []string{"may not do", "$JS.API.>"}},
		"no NATS":                      {nil, []string{"--nats.url", "nats://joe:a@127.0.0.1:1", "--start.timeout", "1s"}, []string{"no NATS server answers at 127.0.0.1:1: start it"}},
		"no Redis":                     {nil, []string{"--redis.url", "redis://127.0.0.1:1", "--start.timeout", "1s"}, []string{"no Redis answers: start it", "127.0.0.1:1"}},
	} {
		t.Run(about, func(t *testing.T) {
			t.Parallel()
			at := used
			if c.nats != nil {
				at = agoratest.StartNATS(t, *c.nats).URL()
			}
			began := time.Now()
			refuses(t, c.want, append([]string{"--redis.url", redis, "--nats.url", at}, c.flags...)...)
			if took := time.Since(began); took > 10*time.Second {
				t.Errorf("that took %v", took)
			}
		})
	}
}

func TestAnEdgeWaitsForItsServersToStart(t *testing.T) {
	r := agoratest.Redis(t)
	r.Stop()
	e := launch(t, append(alone, "--nats.url", agoratest.StartNATS(t, agoratest.NATSConfig{}).URL(), "--redis.url", "redis://"+r.Addr())...)
	until(t, "the edge waits", func() bool { return strings.Contains(e.stderr.String(), "waiting") || len(e.status) > 0 })
	r.Start()
	e.ready()
}

func TestAnEdgeThatIsAskedToEndWhileItStartsEndsWell(t *testing.T) {
	e := launch(t, append(alone, "--nats.url", "nats://127.0.0.1:1", "--redis.url", "redis://127.0.0.1:1")...)
	if status := e.ended(); status != 0 {
		t.Errorf("agora edge ended with %d: %s", status, e.stderr)
	}
}

func TestAStreamDeletedByHandComesBackAndCarriesMessages(t *testing.T) {
	nats := agoratest.StartNATS(t, agoratest.NATSConfig{})
	e := launch(t, append(alone, "--nats.url", nats.URL(), "--redis.url", "redis://"+agoratest.Redis(t).Addr())...).ready()
	a := connect(t, e.public+"?agent_id=alice")
	a.hear("agent.registered")
	if n := nats.DeleteStreams(t); n != 2 {
		t.Fatalf("%d streams, want 2", n)
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
