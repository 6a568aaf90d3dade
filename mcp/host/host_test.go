package host_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/agora-relay/agora/client"
	"github.com/agora-relay/agora/internal/await"
	"github.com/agora-relay/agora/internal/faultnet"
	"github.com/agora-relay/agora/mcp/host"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// TestToolsAreDescribedAsInTheGoldenFile holds what models read against testdata/tools.json. AGORA_UPDATE_DOCS=1 writes
// it.
func TestToolsAreDescribedAsInTheGoldenFile(t *testing.T) {
	t.Parallel()
	m := startModel(t, []string{"ws://127.0.0.1:1"}, "me", nil)
	tools, err := m.session.ListTools(await.Context(t), nil)
	if err != nil {
		t.Fatal(err)
	}
	got, err := json.MarshalIndent(object{"instructions": m.session.InitializeResult().Instructions, "tools": tools.Tools}, "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join("testdata", "tools.json")
	if os.Getenv("AGORA_UPDATE_DOCS") != "" {
		if err := os.WriteFile(path, append(got, '\n'), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if string(want) != string(got)+"\n" {
		t.Errorf("%s says something else; AGORA_UPDATE_DOCS=1 writes it anew:\n%s", path, got)
	}
}

// TestNoSchemaIsBare holds that each schema within those of the tools is an object that says something: hosts refuse
// `true`, and some `{}`.
func TestNoSchemaIsBare(t *testing.T) {
	t.Parallel()
	m := startModel(t, []string{"ws://127.0.0.1:1"}, "me", nil)
	tools, err := m.session.ListTools(await.Context(t), nil)
	if err != nil {
		t.Fatal(err)
	}
	var look func(at string, schema any)
	look = func(at string, schema any) {
		s, ok := schema.(object)
		if !ok || len(s) == 0 {
			t.Errorf("%s is %v", at, schema)
		}
		if _, one := s["type"].(string); one == (s["anyOf"] != nil) {
			t.Errorf("%s is not of one type, nor of one of several: %v", at, s)
		}
		for name, p := range s {
			switch {
			case name == "properties":
				for name, p := range p.(object) {
					look(at+"/"+name, p)
				}
			case name == "anyOf":
				for _, p := range p.([]any) {
					look(at+"/anyOf", p)
				}
			case name == "items" || name == "additionalProperties" && p != false:
				look(at+"/"+name, p)
			}
		}
	}
	for _, tool := range tools.Tools {
		look(tool.Name+" takes", tool.InputSchema)
		look(tool.Name+" returns", tool.OutputSchema)
	}
}

// TestASendWaitsForNoAcknowledgement sends so often that waits of a second each would not end in time.
func TestASendWaitsForNoAcknowledgement(t *testing.T) {
	t.Parallel()
	c := startCluster(t)
	ann, ben := startModel(t, c.URLs(), "ann", nil), startModel(t, c.URLs(), "ben", nil)
	use[mail](ben, "agora_inbox", nil)
	ctx := await.Context(t)
	for n := range int(await.Long/time.Second) + 10 {
		r, err := ann.session.CallTool(ctx, &mcp.CallToolParams{Name: "agora_send", Arguments: object{"to": "ben", "text": "x"}})
		if err != nil || r.IsError {
			t.Fatalf("message %d: %v, %+v", n, err, r)
		}
	}
}

func TestAMessageReachesAnotherModelAndSaysHowFarItCame(t *testing.T) {
	t.Parallel()
	c := startCluster(t)
	ann, ben := startModel(t, c.URLs(), "ann", nil), startModel(t, c.URLs(), "ben", nil)
	use[mail](ben, "agora_inbox", nil) // it is connected
	sent := use[struct{ ID, To, Tier string }](ann, "agora_send", object{"to": "ben", "text": "hello", "wait_s": 50 * 0})
	if sent.ID == "" || sent.To != "ben" || sent.Tier != "stored" && sent.Tier != "delivered" {
		t.Fatalf("sent: %+v", sent)
	}
	got := use[mail](ben, "agora_inbox", object{"wait_s": 50})
	if len(got.Messages) != 1 || got.Messages[0].Text != "hello" || got.Messages[0].From != "ann" || got.Messages[0].Kind != "message" {
		t.Fatalf("inbox: %+v", got)
	}
	if again := use[mail](ben, "agora_inbox", nil); len(again.Messages) != 1 {
		t.Fatalf("not acknowledged, and gone: %+v", again)
	}
	seq := got.Messages[0].Seq
	if after := use[mail](ben, "agora_inbox", object{"after": seq, "ack": nil, "wait_s": nil}); len(after.Messages) != 0 {
		t.Fatalf("behind it: %+v", after)
	}
	if acked := use[mail](ben, "agora_inbox", object{"ack": seq}); acked.Acknowledged != 1 || len(acked.Messages) != 0 {
		t.Fatalf("acknowledged: %+v", acked)
	}
	await.True(t, "the receipt", func() bool {
		why := use[struct{ Sent []struct{ ID, Tier string } }](ann, "agora_why", object{"id": sent.ID})
		return len(why.Sent) == 1 && why.Sent[0].Tier == "acked"
	})
}

func TestWhoHasNotAnsweredIsSaidToBeAway(t *testing.T) {
	t.Parallel()
	c := startCluster(t)
	ann := startModel(t, c.URLs(), "ann", nil)
	bob := dial(t, c, "bob")
	type answer struct{ ID, Note string }
	q := use[answer](ann, "agora_ask", object{"to": "bob", "text": "why?", "wait_s": 0})
	if q.Note != "" {
		t.Errorf("of an agent that is there it is said %q", q.Note)
	}
	bob.Close()
	await.True(t, "it is said that it is away", func() bool {
		return use[answer](ann, "agora_ask", object{"id": q.ID, "wait_s": 0}).Note == "It is not connected: the question waits in its mailbox."
	})
}

func TestAQuestionIsAnsweredLateAndInParts(t *testing.T) {
	t.Parallel()
	c := startCluster(t)
	progress := make(chan *mcp.ProgressNotificationParams, 100)
	ann := startModel(t, c.URLs(), "ann", func(_ *host.Config, o *mcp.ClientOptions) {
		o.ProgressNotificationHandler = func(_ context.Context, r *mcp.ProgressNotificationClientRequest) { progress <- r.Params }
	})
	bob := dial(t, c, "bob")
	type answer struct {
		ID, To, Text, Tier string
		Answered           bool
		Seq                uint64
		Offset             int
	}
	first := use[answer](ann, "agora_ask", object{"to": "bob", "text": "why?", "wait_s": 0})
	if first.Answered || first.ID == "" {
		t.Fatalf("answered at once: %+v", first)
	}
	q, err := bob.Receive(await.Context(t))
	if err != nil {
		t.Fatal(err)
	}
	s, err := q.ReplyStream(await.Context(t), nil)
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan answer)
	go func() {
		p := &mcp.CallToolParams{Name: "agora_ask", Arguments: object{"id": first.ID}}
		p.SetProgressToken("p")
		r, err := ann.session.CallTool(await.Context(t), p)
		var a answer
		if err == nil {
			b, _ := json.Marshal(r.StructuredContent)
			err = json.Unmarshal(b, &a)
		}
		if err != nil {
			t.Error(err)
		}
		done <- a
	}()
	s.WriteString("because ")
	if p := await.Recv(t, "progress", progress); p.Message != "because " || p.ProgressToken != "p" {
		t.Fatalf("progress %+v", p)
	}
	s.WriteString(strings.Repeat("y", 9000))
	s.Close()
	a := await.Recv(t, "the answer", done)
	if !a.Answered || !strings.HasPrefix(a.Text, "because yyy") || a.Offset == 0 {
		t.Fatalf("answer: %.100v", a)
	}
	text := a.Text
	for offset := a.Offset; offset > 0; {
		rest := use[mail](ann, "agora_inbox", object{"seq": a.Seq, "offset": offset}).Messages[0]
		text, offset = text+rest.Text, rest.Offset
	}
	if want := "because " + strings.Repeat("y", 9000); text != want {
		t.Fatalf("%d bytes, want %d", len(text), len(want))
	}
	if left := use[mail](ann, "agora_inbox", nil); len(left.Messages) != 0 {
		t.Fatalf("the answer is listed, too: %+v", left)
	}
}

func TestARequestIsAnsweredByItsSeq(t *testing.T) {
	t.Parallel()
	c := startCluster(t)
	ann := startModel(t, c.URLs(), "ann", nil)
	bob := dial(t, c, "bob")
	use[mail](ann, "agora_inbox", nil)
	ctx := await.Context(t)
	replies := make(chan *client.Message, 2)
	for _, name := range []string{"early", "late"} {
		go func() {
			r, err := bob.Request(ctx, "ann", object{"request_id": name, "n": 1})
			if err != nil {
				t.Error(err)
			}
			replies <- r
		}()
	}
	await.True(t, "requests", func() bool { return len(use[mail](ann, "agora_inbox", nil).Messages) == 2 })
	for i, m := range use[mail](ann, "agora_inbox", nil).Messages {
		if m.Kind != "request" || m.RequestID == "" || !strings.Contains(string(m.Payload), `"n":1`) {
			t.Fatalf("request %+v", m)
		}
		if i == 1 {
			use[mail](ann, "agora_inbox", object{"ack": m.Seq}) // and is answered behind that
		}
		use[object](ann, "agora_reply", object{"seq": m.Seq, "text": "to " + m.RequestID})
		r := await.Recv(t, "the reply", replies)
		if want := fmt.Sprintf("to %s", m.RequestID); !strings.Contains(string(r.Payload), want) || r.RequestID() != m.RequestID {
			t.Fatalf("reply %s, want %q", r.Payload, want)
		}
	}
	if left := use[mail](ann, "agora_inbox", nil); len(left.Messages) != 0 {
		t.Fatalf("answered, and there: %+v", left)
	}
}

func TestModelsMeetInASpace(t *testing.T) {
	t.Parallel()
	c := startCluster(t)
	ann := startModel(t, c.URLs(), "ann", func(cfg *host.Config, _ *mcp.ClientOptions) { cfg.Spaces = []string{"build"} })
	ben := startModel(t, c.URLs(), "ben", nil)
	type event struct {
		Seq              uint64
		Kind, From, Text string
		Data             json.RawMessage
	}
	type events struct {
		Members []string
		Events  []event
		Next    uint64
	}
	await.True(t, "the space", func() bool { return !ann.call("agora_publish", object{"space": "build", "text": "first"}).IsError })
	joined := use[events](ben, "agora_join", object{"space": "build"})
	if !slices.Contains(joined.Members, "ann") || !slices.Contains(joined.Members, "ben") {
		t.Fatalf("members %q", joined.Members)
	}
	var got []event
	read := func(m *model, until string) {
		got = nil
		await.True(t, until, func() bool {
			got = append(got, use[events](m, "agora_read_space", object{"space": "build", "wait_s": 50}).Events...)
			return len(got) > 0 && (got[len(got)-1].Text == until || string(got[len(got)-1].Data) == until)
		})
	}
	use[object](ben, "agora_publish", object{"space": "build", "text": "second"})
	read(ann, "second")
	use[object](ann, "agora_publish", object{"space": "build", "data": object{"n": 3}})
	read(ben, `{"n":3}`)
	for i := range 30 {
		use[object](ann, "agora_publish", object{"space": "build", "text": fmt.Sprint(i, strings.Repeat("z", 400))})
	}
	read(ben, "29"+strings.Repeat("z", 400))
	if len(got) != 30 {
		t.Fatalf("%d events, want 30", len(got))
	}
	use[object](ben, "agora_join", object{"space": "build", "leave": true})
	if say := ben.fails("agora_publish", object{"space": "build", "text": "x"}); !strings.Contains(say, "agora_join") {
		t.Fatal(say)
	}
}

func TestBadInputIsASentenceThatSaysWhatToDo(t *testing.T) {
	t.Parallel()
	c := startCluster(t)
	ann := startModel(t, c.URLs(), "ann", nil)
	for _, bad := range []struct {
		tool string
		in   object
		want string
	}{
		{"agora_send", object{"to": "nobody", "text": "x"}, "agora_who"},
		{"agora_send", object{"to": "", "text": "x"}, "agora_who"},
		{"agora_send", object{"to": "ann"}, "text"},
		{"agora_send", object{"text": "x"}, "to"},
		{"agora_send", object{"to": "ann", "text": "x", "urgent": true}, "urgent"},
		{"agora_send", object{"to": strings.Repeat("n", 5000), "text": "x"}, ""},
		{"agora_send", object{"to": "ann", "text": strings.Repeat("x", 2<<20)}, "less at a time"},
		{"agora_send", object{"to": "ann", "text": "x", "payload": 7}, "either"},
		{"agora_send", object{"to": 7, "text": "x"}, "to"},
		{"agora_ask", object{"to": "nobody", "text": "x"}, "agora_who"},
		{"agora_ask", object{"id": "ask-1"}, "agora_inbox"},
		{"agora_ask", object{"to": "ann", "payload": []int{1}}, "object"},
		{"agora_inbox", object{"seq": 12345}, "agora_inbox"},
		{"agora_inbox", object{"ack": -1}, "ack"},
		{"agora_reply", object{"seq": 12345, "text": "x"}, "agora_inbox"},
		{"agora_join", object{"space": ""}, "space"},
		{"agora_join", object{"space": strings.Repeat("s", 5000)}, "space"},
		{"agora_join", object{"space": "nowhere", "leave": true}, "agora_join"},
		{"agora_publish", object{"space": "nowhere", "text": "x"}, "agora_join"},
		{"agora_read_space", object{"space": "nowhere"}, "agora_join"},
		{"agora_who", object{"agent": "nobody"}, "agora_who"},
		{"agora_why", object{"id": "m-1"}, "m-1"},
	} {
		if say := ann.fails(bad.tool, bad.in); !strings.Contains(say, bad.want) || len(say) > 4<<10 {
			t.Errorf("%s %.80v: %.300s, want %q in it", bad.tool, bad.in, say, bad.want)
		}
	}
}

func TestASecondHostOfAnIDSaysWhoHasItAndTakesOverWhenThatEnds(t *testing.T) {
	t.Parallel()
	c := startCluster(t)
	first := startModel(t, c.URLs(), "ann", nil)
	use[mail](first, "agora_inbox", nil)
	second := startModel(t, c.URLs(), "ann", nil)
	say := second.fails("agora_inbox", nil)
	for _, want := range []string{`"ann"`, "process", "--as"} {
		if !strings.Contains(say, want) {
			t.Errorf("%s, want %q in it", say, want)
		}
	}
	first.stop()
	await.True(t, "the second to be the agent", func() bool { return !second.call("agora_inbox", nil).IsError })
}

// A hook looks into the mailbox when its host starts, at the time at which this server does.
func TestAToolWaitsForAHookThatHasTheID(t *testing.T) {
	t.Parallel()
	c := startCluster(t)
	hook := dial(t, c, "ann")
	dials := make(chan struct{}, 1)
	m := startModel(t, c.URLs(), "ann", func(cfg *host.Config, _ *mcp.ClientOptions) {
		cfg.Passing = time.Hour
		dial := cfg.Client.Dial
		cfg.Client.Dial = func(ctx context.Context, network, addr string) (net.Conn, error) {
			select {
			case dials <- struct{}{}:
			case <-t.Context().Done():
			}
			return dial(ctx, network, addr)
		}
	})
	said := make(chan string, 1)
	var work sync.WaitGroup
	defer work.Wait()
	work.Go(func() {
		r, err := m.session.CallTool(await.Context(t), &mcp.CallToolParams{Name: "agora_inbox"})
		switch {
		case err != nil:
			said <- err.Error()
		case r.IsError:
			said <- text(r)
		default:
			said <- ""
		}
	})
	for range 4 { // it is refused, asks who has the id, and is refused again
		<-dials
	}
	select {
	case trouble := <-said:
		t.Fatalf("the tool does not wait for the hook: %q", trouble)
	default:
	}
	hook.Close()
	for {
		select {
		case <-dials:
		case trouble := <-said:
			if trouble != "" {
				t.Errorf("the tool fails once the hook has ended: %s", trouble)
			}
			return
		}
	}
}

func TestToolsSayThatNoEdgeCanBeReachedAndWorkOnceOneCan(t *testing.T) {
	t.Parallel()
	c := startCluster(t)
	p := faultnet.NewProxy(t, strings.TrimSuffix(strings.TrimPrefix(c.URL(0), "ws://"), "/ws"))
	p.Cut()
	m := startModel(t, []string{"ws://" + p.Addr()}, "ann", nil)
	tools, err := m.session.ListTools(await.Context(t), nil)
	if err != nil {
		t.Fatal(err)
	}
	var calls sync.WaitGroup
	defer calls.Wait()
	for _, tool := range tools.Tools { // every one names the edge, or works without
		in := object{"to": "ann", "text": "x", "space": "build", "seq": 1}
		for name := range in {
			if _, there := tool.InputSchema.(object)["properties"].(object)[name]; !there || name == "seq" && tool.Name != "agora_reply" {
				delete(in, name)
			}
		}
		calls.Go(func() { // at a time: each waits some seconds for an edge
			r, err := m.session.CallTool(await.Context(t), &mcp.CallToolParams{Name: tool.Name, Arguments: in})
			if err != nil || !strings.Contains(text(r), p.Addr()) && tool.Name != "agora_reply" && tool.Name != "agora_read_space" {
				t.Errorf("%s says %+v, %v, and not which edge", tool.Name, r, err)
			}
		})
	}
	calls.Wait()
	p.Mend()
	await.True(t, "a connection", func() bool { return !m.call("agora_send", object{"to": "ann", "text": "kept"}).IsError })
	await.True(t, "the message", func() bool { return len(use[mail](m, "agora_inbox", nil).Messages) == 1 })
	p.Cut()
	await.True(t, "trouble", func() bool {
		got := use[mail](m, "agora_inbox", nil)
		return strings.Contains(got.Trouble, "no edge") && strings.Contains(got.Trouble, p.Addr()) && len(got.Messages) == 1
	})
	p.Mend()
	await.True(t, "a connection again", func() bool { return use[mail](m, "agora_inbox", nil).Trouble == "" })
}
