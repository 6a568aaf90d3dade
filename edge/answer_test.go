package edge_test

import (
	"cmp"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/agora-relay/agora"
	"github.com/agora-relay/agora/edge"
	"github.com/agora-relay/agora/internal/agoratest"
	"github.com/agora-relay/agora/internal/await"
	"github.com/agora-relay/agora/presence"
)

// piece is a part of bob's answer to a request of anna's or alice's.
func piece(to agora.AgentID, part agora.Part, id, request, body string) agora.Message {
	return agora.Message{ID: id, Kind: agora.Reply, Part: part, To: agora.Address{Agent: to}, Body: []byte(body), Meta: agora.Meta{Parent: request}}
}

// Chunks that name a request open a stream with the first of them, wherever they come in, and the answer ends it. What
// is said again is not doubled.
func TestAnAnswerIsAStreamFromItsFirstChunkOn(t *testing.T) {
	t.Parallel()
	c := start(t, agoratest.Options{})
	bob, _ := registered(t, c, 0, "bob")
	a := calls(t, c, 1, question("bob", "r"))
	bob.Expect(`{"type":"message","from":"anna"}`)
	for i, m := range []agora.Message{
		piece("anna", agora.Chunk, "1", "r", `"one"`), piece("anna", agora.Chunk, "2", "r", `"two"`), piece("anna", agora.Chunk, "2", "r", `"two"`),
		piece("anna", agora.Whole, "3", "r", `{"done":true}`), piece("anna", agora.Whole, "3", "r", `{"done":true}`),
	} {
		if _, err := actor(t, c, i%3).Do(await.Context(t), "bob", asCommand(edge.Answer, m)); err != nil {
			t.Fatalf("part %d: %v", i, err)
		}
	}
	answers(t, a, "", `"one"`, `"two"`, `{"done":true}`)
	if _, err := actor(t, c, 0).Do(await.Context(t), "bob", asCommand(edge.Answer, piece("anna", agora.Chunk, "4", "r", `"late"`))); code(err) != agora.StreamNotFound {
		t.Errorf("a chunk behind the end: %v, want STREAM_NOT_FOUND", err)
	}
}

func TestChunksThatComeAtOneTimeOpenOneStream(t *testing.T) {
	t.Parallel()
	c := start(t, agoratest.Options{})
	bob, _ := registered(t, c, 0, "bob")
	a := calls(t, c, 1, question("bob", "r"))
	bob.Expect(`{"type":"message","from":"anna"}`)
	const many = 16
	var all sync.WaitGroup
	for i := range many {
		who := actor(t, c, i%3)
		all.Go(func() {
			if _, err := who.Do(await.Context(t), "bob", asCommand(edge.Answer, piece("anna", agora.Chunk, fmt.Sprint(i), "r", `"x"`))); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	if _, err := actor(t, c, 2).Do(await.Context(t), "bob", asCommand(edge.Answer, piece("anna", agora.Whole, "end", "r", `1`))); err != nil {
		t.Fatal(err)
	}
	bodies, err := parts(t, a)
	if err != nil || len(bodies) != 1+many+1 {
		t.Errorf("the answer has %d parts, %v; want a start, %d chunks and an end", len(bodies), err, many)
	}
}

// A request that was mail is answered the same way, and two answers with one name are two.
func TestAnswersToMailGoToTheMailbox(t *testing.T) {
	t.Parallel()
	c := start(t, agoratest.Options{})
	alice, _ := registered(t, c, 0, "alice")
	registered(t, c, 1, "bob")
	who := actor(t, c, 2)
	say := func(m agora.Message) {
		t.Helper()
		if _, err := who.Do(await.Context(t), "bob", asCommand(edge.Answer, m)); err != nil {
			t.Fatal(err)
		}
	}
	say(piece("alice", agora.Whole, "1", "q", `"whole"`))
	alice.Expect(`{"type":"reply","from":"bob","payload":"whole"}`)
	for _, round := range []string{"a", "b"} {
		say(piece("alice", agora.Chunk, round+"1", "q"+round, `"c"`))
		say(piece("alice", agora.Whole, round+"2", "q"+round, `"end"`))
		alice.Expect(`{"type":"reply","from":"bob","stream_id":"q` + round + `","stream":true}`)
		alice.Expect(`{"type":"reply_chunk","from":"bob","chunk":"c"}`)
		alice.Expect(`{"type":"reply_end","from":"bob"}`)
	}
	say(piece("alice", agora.Whole, "another", "qa", `"another"`))
	alice.Expect(`{"type":"reply","from":"bob","payload":"another"}`)
}

func TestAnAnswerThatWasCancelledTakesNoMore(t *testing.T) {
	t.Parallel()
	c := start(t, agoratest.Options{})
	alice, _ := registered(t, c, 0, "alice")
	bob, _ := registered(t, c, 1, "bob")
	who := actor(t, c, 2)
	if _, err := who.Do(await.Context(t), "bob", asCommand(edge.Answer, piece("alice", agora.Chunk, "1", "q", `"c"`))); err != nil {
		t.Fatal(err)
	}
	alice.Expect(`{"type":"reply","stream":true}`)
	alice.Expect(`{"type":"reply_chunk"}`)
	alice.Send(`{"type":"cancel","to":"bob","stream_id":"q"}`)
	bob.Expect(`{"type":"cancel","from":"alice","stream_id":"q"}`)
	if _, err := who.Do(await.Context(t), "bob", asCommand(edge.Answer, piece("alice", agora.Chunk, "2", "q", `"c"`))); code(err) != agora.StreamNotFound {
		t.Errorf("a chunk behind the cancel: %v, want STREAM_NOT_FOUND", err)
	}
}

// A stream that an agent has opened by a request of its own continues and ends by the request's name.
func TestAStreamOfOnesOwnGoesOnByItsRequest(t *testing.T) {
	t.Parallel()
	c := start(t, agoratest.Options{})
	alice, _ := registered(t, c, 0, "alice")
	registered(t, c, 1, "bob")
	who := actor(t, c, 2)
	if _, err := who.Do(await.Context(t), "bob", asCommand(edge.Send, to("alice", agora.Start, "q", `{"go":1}`))); err != nil {
		t.Fatal(err)
	}
	part := piece("alice", agora.Chunk, "1", "q", `"c"`)
	end := piece("alice", agora.End, "2", "q", "")
	end.Kind, end.Body = agora.Request, nil
	for _, m := range []agora.Message{part, end} {
		if _, err := who.Do(await.Context(t), "bob", asCommand(edge.Answer, m)); err != nil {
			t.Fatal(err)
		}
	}
	alice.Expect(`{"type":"message","stream_id":"q","payload":{"go":1}}`)
	alice.Expect(`{"type":"message_chunk","chunk":"c"}`)
	alice.Expect(`{"type":"message_end"}`)
	end.ID = "3"
	if _, err := who.Do(await.Context(t), "bob", asCommand(edge.Answer, end)); code(err) != agora.StreamNotFound {
		t.Errorf("a second end: %v, want STREAM_NOT_FOUND", err)
	}
}

// Who can prove nothing has its mail again when it comes back without a word, and meanwhile its writers are not slowed
// for it.
func TestWhatWasWrittenToWhoCanProveNothingIsReadForItsWritersAlone(t *testing.T) {
	t.Parallel()
	const room = 64
	c := start(t, agoratest.Options{Edges: 2, Node: edge.Config{MaxRecords: room}})
	alice, _ := registered(t, c, 1, "alice")
	who := actor(t, c, 0)
	open := func(h edge.Hello) (*edge.Session, woken) {
		t.Helper()
		wakes := make(woken, 1)
		h.Card, h.Proof = agora.Agent{ID: "bob", Dialect: "quiet"}, edge.ByReturn
		s, _, err := who.Open(await.Context(t), h, wakes)
		if err != nil {
			t.Fatal(err)
		}
		s.Begin()
		return s, wakes
	}
	s, wakes := open(edge.Hello{Conn: "one"})
	pull := func() (all []edge.Delivery) {
		t.Helper()
		for {
			ds, err := s.Pull(await.Context(t), 1<<20, func() {})
			if err != nil {
				t.Fatal(err)
			}
			for _, d := range ds {
				m := *d.Message
				d.Message = &m
				all = append(all, d)
			}
			s.Written()
			switch {
			case len(ds) > 0: // until there is nothing, nobody is woken
			case len(all) > 0:
				return all
			default:
				await.Recv(t, "something to pull", wakes)
			}
		}
	}
	for i := range 4 * room {
		alice.Send(fmt.Sprintf(`{"type":"send","to":"bob","id":"%d","payload":%d}`, i, i))
		alice.Expect(`{"type":"receipt","status":"stored"}`)
		if got := pull(); string(got[0].Message.Body) != fmt.Sprint(i) || got[0].Redelivered {
			t.Fatalf("message %d is %s, redelivered %v", i, got[0].Message.Body, got[0].Redelivered)
		}
	}
	s.Closed(false)
	s, wakes = open(edge.Hello{Conn: "two"})
	defer func() { s.Closed(true) }()
	again := pull()
	for i, d := range again {
		if d.Message.Kind != agora.Gap && !d.Redelivered {
			t.Fatalf("delivery %d after the return is not marked", i)
		}
	}
}

// While a session is in its grace, what belongs to its streams waits for it; what does not is answered at once.
func TestStreamsOfASessionInItsGraceWaitForIt(t *testing.T) {
	t.Parallel()
	c := start(t, agoratest.Options{Grace: time.Hour, Node: edge.Config{Patience: 300 * time.Millisecond}})
	patient := start(t, agoratest.Options{Grace: time.Hour, Node: edge.Config{Patience: time.Hour}})
	for _, c := range []*agoratest.Cluster{c, patient} {
		alice, _ := registered(t, c, 0, "alice")
		bob, w := registered(t, c, 1, "bob")
		who := actor(t, c, 2)
		say := func(m agora.Message) error {
			_, err := who.Do(await.Context(t), "bob", asCommand(edge.Answer, m))
			return err
		}
		if err := say(piece("alice", agora.Chunk, "1", "q", `"one"`)); err != nil {
			t.Fatal(err)
		}
		bob.Drop()
		await.True(t, "bob is away", func() bool {
			found, err := c.Node(0).Config().Presence.Addressees.Lookup(t.Context(), actor(t, c, 0).Principal().Tenant, "bob")
			return err == nil && found.State == presence.Away && found.Returns
		})
		end := piece("alice", agora.End, "x", "other", "")
		end.Kind = agora.Request
		if err := say(end); code(err) != agora.StreamNotFound {
			t.Errorf("the end of a stream that is not open: %v", err)
		}
		if err := say(piece("alice", agora.Whole, "y", "other", `"other"`)); err != nil {
			t.Errorf("an answer that is none of a stream: %v", err)
		}
		alice.Expect(`{"type":"reply","stream_id":"q"}`)
		alice.Expect(`{"type":"reply_chunk","chunk":"one"}`)
		alice.Expect(`{"type":"reply","payload":"other"}`)
		if c != patient {
			for _, m := range []agora.Message{piece("alice", agora.Chunk, "2", "q", `"two"`), piece("alice", agora.Whole, "3", "q", `"end"`)} {
				if err := say(m); code(err) != agora.Unavailable {
					t.Errorf("part %s of who does not come back: %v, want UNAVAILABLE", m.ID, err)
				}
			}
			continue
		}
		said := make(chan error, 1)
		go func() {
			err := say(piece("alice", agora.Chunk, "2", "q", `"two"`))
			said <- cmp.Or(err, say(piece("alice", agora.Whole, "3", "q", `"end"`)))
		}()
		registered(t, c, 2, "bob", token(w))
		if err := await.Recv(t, "what became of the parts", said); err != nil {
			t.Error(err)
		}
		alice.Expect(`{"type":"reply_chunk","chunk":"two"}`)
		alice.Expect(`{"type":"reply_end"}`)
	}
}
