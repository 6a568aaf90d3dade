package host_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/agora-relay/agora/internal/agoratest"
	"github.com/agora-relay/agora/internal/await"
	"github.com/agora-relay/agora/mcp/host"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// reader is a model's host that drops every notification, dies whenever it likes, and comes back.
type reader struct {
	t     *testing.T
	rand  *rand.Rand
	c     *agoratest.Cluster
	seen  []string        // by any of its models, in the order in which each was seen first
	known map[string]bool // the same
	acked map[string]bool // by the cluster, as far as a result said
	m     *model
}

func (r *reader) live() {
	r.m = startModel(r.t, r.c.URLs(), "reader", nil)
}

// look reads the mailbox, and may acknowledge a part of what it has seen before.
func (r *reader) look() int {
	last, shown := uint64(0), map[uint64]string{}
	in := object{"wait_s": 0.1}
	for {
		got := use[mail](r.m, "agora_inbox", in)
		for _, m := range got.Messages {
			if r.acked[m.Text] && !m.Again {
				r.t.Errorf("%s was acknowledged, and comes again unmarked", m.Text)
			}
			if !r.known[m.Text] {
				r.known[m.Text] = true
				r.seen = append(r.seen, m.Text)
			}
			last, shown[m.Seq] = m.Seq, m.Text
		}
		if got.More == 0 {
			break
		}
		in = object{"after": last}
	}
	if len(shown) == 0 || r.rand.IntN(3) == 0 {
		return len(shown)
	}
	all := make([]uint64, 0, len(shown))
	for seq := range shown {
		all = append(all, seq)
	}
	slices.Sort(all)
	upTo := all[r.rand.IntN(len(all))]
	use[mail](r.m, "agora_inbox", object{"ack": upTo, "after": last})
	for seq, text := range shown {
		if seq <= upTo {
			r.acked[text] = true
		}
	}
	return len(shown)
}

// TestNothingIsLostToAHostThatDropsNotificationsAndDies has messages sent to a host that is killed again and again,
// between taking and acknowledging, too. Every message is seen by some model of it, in order.
func TestNothingIsLostToAHostThatDropsNotificationsAndDies(t *testing.T) {
	t.Parallel()
	const messages, lives = 60, 6
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	c := startCluster(t)
	r := &reader{t: t, rand: rand.New(rand.NewPCG(seed, 0)), c: c, known: map[string]bool{}, acked: map[string]bool{}}
	r.live()
	use[mail](r.m, "agora_inbox", nil) // it is known
	bob := dial(t, c, "bob")
	sent := make(chan error, 1)
	go func() {
		for i := range messages {
			if err := bob.Send(await.Context(t), "reader", object{"text": fmt.Sprintf("message %d", i)}); err != nil {
				sent <- err
				return
			}
		}
		sent <- nil
	}()
	for life := range lives {
		for range 1 + r.rand.IntN(3) {
			r.look()
		}
		if life%2 == 0 {
			r.m.kill()
		} else {
			r.m.stop()
		}
		r.live()
	}
	if err := await.Recv(t, "everything to be sent", sent); err != nil {
		t.Fatal(err)
	}
	await.True(t, "everything to be seen", func() bool { r.look(); return len(r.seen) >= messages })
	for i, text := range r.seen {
		if text != fmt.Sprintf("message %d", i) {
			t.Fatalf("%d is %q: %q", i, text, r.seen)
		}
	}
}

// TestAnAnswerThatItsHostDiedWithComesAgain has a host die right behind the answer to a question: the model may not
// have seen it.
func TestAnAnswerThatItsHostDiedWithComesAgain(t *testing.T) {
	t.Parallel()
	c := startCluster(t)
	ann := startModel(t, c.URLs(), "ann", nil)
	bob := dial(t, c, "bob")
	ctx := await.Context(t)
	for range 2 {
		go func() {
			if q, err := bob.Receive(ctx); err == nil {
				_ = q.Reply(ctx, object{"text": "42"}) // it is missed if it fails
			}
		}()
		if a := use[struct{ Text string }](ann, "agora_ask", object{"to": "bob", "text": "?"}); a.Text != "42" {
			t.Fatalf("answer %q", a.Text)
		}
	}
	// The first answer is acknowledged by now: a call has followed it.
	ann.kill()
	ann = startModel(t, c.URLs(), "ann", nil)
	got := use[mail](ann, "agora_inbox", object{"wait_s": 50})
	if len(got.Messages) == 0 || got.Messages[len(got.Messages)-1].Kind != "reply" || !got.Messages[len(got.Messages)-1].Again {
		t.Fatalf("inbox: %+v", got)
	}
}

// TestTwoModelsTalkThroughEdgesThatDie has two hosts talk, and kills one of the edges that they are at.
func TestTwoModelsTalkThroughEdgesThatDie(t *testing.T) {
	t.Parallel()
	const questions = 12
	c := startCluster(t)
	ann, ben := startModel(t, c.URLs(), "ann", nil), startModel(t, c.URLs(), "ben", nil)
	use[mail](ben, "agora_inbox", nil)
	over := make(chan struct{})
	go func() {
		defer close(over)
		for n := 0; n < questions; {
			for _, m := range use[mail](ben, "agora_inbox", object{"wait_s": 5}).Messages {
				if m.Kind != "request" {
					continue
				}
				use[object](ben, "agora_reply", object{"seq": m.Seq, "text": "re: " + m.Text})
				n++
			}
		}
	}()
	for i := range questions {
		if i == questions/3 {
			edge := use[struct{ Edge string }](ben, "agora_why", nil).Edge
			k := slices.IndexFunc(c.Edges(), func(k int) bool { return strings.HasPrefix(edge, strings.TrimSuffix(c.URL(k), "/ws")) })
			if k < 0 {
				t.Fatalf("%s is no edge of %q", edge, c.URLs())
			}
			c.CutEdge(c.Edges()[k])
		}
		text := fmt.Sprint("question ", i)
		type answer struct {
			ID, Text string
			Answered bool
		}
		a := use[answer](ann, "agora_ask", object{"to": "ben", "text": text})
		for !a.Answered {
			a = use[answer](ann, "agora_ask", object{"id": a.ID})
		}
		if a.Text != "re: "+text {
			t.Fatalf("%s: %+v", text, a)
		}
	}
	await.Recv(t, "the other side", over)
}

func TestTheBellTellsAHostThatTakesItAndNothingCountsAsRead(t *testing.T) {
	t.Parallel()
	c := startCluster(t)
	updated := make(chan string, 10)
	ann := startModel(t, c.URLs(), "ann", func(_ *host.Config, o *mcp.ClientOptions) {
		o.ResourceUpdatedHandler = func(_ context.Context, r *mcp.ResourceUpdatedNotificationRequest) { updated <- r.Params.URI }
	})
	use[mail](ann, "agora_inbox", nil)
	if err := ann.session.Subscribe(await.Context(t), &mcp.SubscribeParams{URI: "agora://inbox"}); err != nil {
		t.Fatal(err)
	}
	bob, sent, last := dial(t, c, "bob"), 0, time.Time{}
	await.True(t, "the bell", func() bool { // for one of several: that the server knows of the subscription is not told
		select {
		case uri := <-updated:
			if uri != "agora://inbox" {
				t.Errorf("rang for %s", uri)
			}
			return true
		default:
		}
		if time.Since(last) > 200*time.Millisecond {
			if err := bob.Send(await.Context(t), "ann", object{"text": "ring"}); err != nil {
				t.Fatal(err)
			}
			sent, last = sent+1, time.Now()
		}
		return false
	})
	r, err := ann.session.ReadResource(await.Context(t), &mcp.ReadResourceParams{URI: "agora://inbox"})
	if err != nil || len(r.Contents) != 1 || !strings.Contains(r.Contents[0].Text, "ring") {
		t.Fatalf("%+v, %v", r, err)
	}
	await.True(t, "all of them wait to be read", func() bool { return len(use[mail](ann, "agora_inbox", nil).Messages) == sent })
}
