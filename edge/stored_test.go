package edge_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/agora-relay/agora"
	"github.com/agora-relay/agora/broker"
	"github.com/agora-relay/agora/internal/agoratest"
	"github.com/agora-relay/agora/internal/await"
)

// What stands in a log since records of the cluster's own were members of frames, and chunks quoted strings.
func TestWhatWasStoredInTheFirstVersionIsDelivered(t *testing.T) {
	t.Parallel()
	c := start(t, agoratest.Options{Edges: 1})
	a, welcome := registered(t, c, 0, "alice")
	session, _, _ := strings.Cut(welcome.Text("resume_token"), ".")
	mail, room := agora.ToAgent(agora.DefaultTenant, "alice"), agora.ToSpace(agora.DefaultTenant, "room")
	a.Send(`{"type":"space.join","space":"room"}`)
	a.Expect(`{"type":"space.joined"}`)
	for i, m := range []agora.Message{
		{Kind: agora.Receipt, To: mail, Body: []byte(`"request_id":"m 1","status":"delivered","to":"bob"`)},
		{Kind: agora.Receipt, To: mail, Body: []byte(`"stream_id":"s","index":3,"status":"acked","to":"bob"`)},
		{Kind: agora.Receipt, To: mail, Stream: "of before", Body: []byte(`"to":"bob","n":6,"status":"acked"`)},
		{Kind: agora.Receipt, To: mail, Stream: session, Body: []byte(`"to":"bob","n":7,"status":"acked"`)},
		{Part: agora.Start, To: mail, Stream: "s", Body: []byte(`{}`)},
		{Part: agora.Chunk, To: mail, Stream: "s", Body: []byte(`"a\u0020word\n"`)},
		{Part: agora.Abort, To: mail, Stream: "s", Body: []byte(`STREAM_ABORTED`)},
		{Kind: agora.Control, Part: agora.Abort, To: mail, Body: []byte(`TIMEOUT r 1`)},
		{Kind: agora.Roster, To: room, N: 1 << 60, Body: []byte(`"members":["alice","bob"],"joined":"bob","left":null`)},
	} {
		m.From = "bob"
		if _, err := c.Broker(0).Publish(await.Context(t), fmt.Sprint("first version ", i), m); err != nil {
			t.Fatal(err)
		}
	}
	a.ExpectAll(
		`{"type":"receipt","request_id":"m 1","status":"delivered","to":"bob"}`,
		`{"type":"receipt","stream_id":"s","index":3,"status":"acked","to":"bob"}`,
		`{"type":"receipt","to":"bob","n":7,"status":"acked"}`,
		`{"type":"message","stream":true,"from":"bob"}`,
		`{"type":"message_chunk","chunk":"a word\n"}`,
		`{"type":"error","code":"STREAM_ABORTED","stream_id":"s","from":"bob"}`,
		`{"type":"error","code":"TIMEOUT","request_id":"r 1","from":"bob"}`,
		`{"type":"space.members","members":["alice","bob"],"joined":"bob","left":null}`,
	)
}

func TestAChunkIsKeptAsText(t *testing.T) {
	t.Parallel()
	c := start(t, agoratest.Options{Edges: 1})
	a, _ := registered(t, c, 0, "alice")
	registered(t, c, 0, "bob")
	a.Send(
		`{"type":"send","to":"bob","stream":true,"stream_id":"s","payload":"a word"}`,
		`{"type":"send_chunk","to":"bob","stream_id":"s","chunk":"a \"word\"\n☃"}`,
		`{"type":"send_chunk","to":"bob","stream_id":"s","chunk":"half \ud83d"}`,
		`{"type":"send_end","to":"bob","stream_id":"s","id":"end"}`,
	)
	a.Expect(`{"type":"receipt","request_id":"end","status":"stored"}`)
	inbox := c.Broker(0).Listen(agora.ToAgent(agora.DefaultTenant, "bob"), broker.From{}, func() {})
	defer inbox.Close()
	got, err := inbox.Next(await.Context(t), 1<<20)
	if err != nil {
		t.Fatal(err)
	}
	want := []string{` "a word"`, agora.MediaText + " a \"word\"\n☃", ` "half \ud83d"`, " "}
	if len(got) != len(want) {
		t.Fatalf("%d messages are stored, want %d", len(got), len(want))
	}
	for i, m := range got {
		if s := m.Media + " " + string(m.Body); s != want[i] {
			t.Errorf("part %d is %q, want %q", i, s, want[i])
		}
	}
}
