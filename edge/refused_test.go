package edge_test

import (
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/agora-relay/agora"
	"github.com/agora-relay/agora/edge"
	"github.com/agora-relay/agora/edge/admission"
	"github.com/agora-relay/agora/internal/agoratest"
)

// A chunk whose number is refused for the moment ends its stream. Anyone who sends it again under its number, as the
// number demands, must hear that: with neither receipt nor error it would be sent for ever.
func TestAPartSentAgainAfterARefusalLearnsThatItsStreamIsOver(t *testing.T) {
	t.Parallel()
	c := start(t, agoratest.Options{})
	sender, _ := registered(t, c, 0, "sender")
	receiver, _ := registered(t, c, 0, "receiver")
	sender.Send(`{"type":"send","to":"receiver","n":1,"stream_id":"s","stream":true}`)
	sender.Expect(`{"type":"receipt","n":1}`)
	c.CutPresence(0)
	sender.Send(`{"type":"send","to":"receiver","n":2,"stream_id":"other","stream":true}`)
	sender.Expect(`{"type":"error","code":"UNAVAILABLE","n":2}`)
	chunk := `{"type":"send_chunk","to":"receiver","n":3,"stream_id":"s","chunk":"c"}`
	sender.Send(chunk)
	sender.Expect(`{"type":"error","code":"UNAVAILABLE","n":3}`)
	receiver.Expect(`{"type":"message","stream_id":"s"}`, `{"type":"error","code":"STREAM_ABORTED","stream_id":"s"}`)
	c.MendEdge(0)
	sender.Send(numbered("receiver", 2))
	sender.Await(`{"type":"receipt","n":2}`)
	sender.Send(chunk)
	sender.Expect(`{"type":"error","code":"STREAM_ABORTED","n":3}`)
	sender.Send(`{"type":"send_chunk","to":"receiver","n":4,"stream_id":"s","chunk":"d"}`) // dropped: the stream is answered for
	sender.Send(numbered("receiver", 5))
	sender.Expect(`{"type":"receipt","n":5}`)
	got(receiver, 2, 5)
}

// An event whose start was refused is answered for, like a stream: who pours a model's words into a space that it may
// not write to hears that once, and not at every word.
func TestAnEventWhoseStartWasRefusedIsAnsweredOnce(t *testing.T) {
	t.Parallel()
	c := start(t, agoratest.Options{})
	member, _ := registered(t, c, 0, "member")
	member.Send(`{"type":"space.join","id":"1","space":"lab"}`)
	member.Expect(`{"type":"space.joined"}`)
	a, _ := registered(t, c, 0, "stranger")
	for range 2 { // the end ends the silence: a second event is another one
		a.Send(`{"type":"space.publish","id":"p","space":"lab","data":{"text":""},"stream":true}`)
		a.Expect(`{"type":"error","request_id":"p","code":"FORBIDDEN"}`)
		for range 3 {
			a.Send(`{"type":"space.publish.delta","space":"lab","event_id":"p","data":{"text":"x"}}`)
		}
		a.Send(`{"type":"space.publish.done","space":"lab","event_id":"p"}`)
		a.Send(`{"type":"space.list","id":"2"}`)
		a.Expect(`{"type":"space.list","id":"2"}`)
	}
	for range 3 { // one that was never begun
		a.Send(`{"type":"space.publish.delta","space":"lab","event_id":"q","data":{"text":"x"}}`)
	}
	a.Expect(`{"type":"error","code":"FORBIDDEN"}`)
	a.Send(`{"type":"space.list","id":"3"}`)
	a.Expect(`{"type":"space.list","id":"3"}`)
}

// A cancel that was refused for the moment may come again: else a stream's sender would never hear that nobody reads
// it.
func TestACancelThatWasRefusedForTheMomentReachesTheSenderWhenItComesAgain(t *testing.T) {
	t.Parallel()
	c := start(t, agoratest.Options{})
	sender, _ := registered(t, c, 0, "sender")
	receiver, _ := registered(t, c, 1, "receiver")
	opens(sender, receiver)
	raw := redis.NewClient(&redis.Options{Addr: c.Redis.Addr()})
	defer raw.Close()
	agent := "agora:1:{a:default.receiver}:"
	lanes := agent + "lanes:" + agora.EncodeToken(raw.HGet(t.Context(), agent+"rec", "session").Val())
	if err := raw.Set(t.Context(), lanes, "of another type", 0).Err(); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		receiver.Send(`{"type":"cancel","id":"c","to":"sender","stream_id":"s"}`)
		receiver.Expect(`{"type":"error","request_id":"c","code":"UNAVAILABLE"}`)
	}
	if err := raw.Del(t.Context(), lanes).Err(); err != nil {
		t.Fatal(err)
	}
	receiver.Send(`{"type":"cancel","id":"c","to":"sender","stream_id":"s"}`)
	sender.Expect(`{"type":"cancel","from":"receiver","stream_id":"s"}`)
	receiver.Expect(`{"type":"receipt","request_id":"c"}`)
	receiver.Send(`{"type":"cancel","id":"d","to":"sender","stream_id":"s"}`)
	receiver.Expect(`{"type":"error","request_id":"d","code":"STREAM_NOT_FOUND"}`)
}

// A frame comes again while its first copy is under way: refused permanently it would use the number up that the first
// one still has.
func TestACopyOfWhatIsUnderWayIsNotRefusedForGood(t *testing.T) {
	t.Parallel()
	c := start(t, agoratest.Options{Node: edge.Config{Limits: admission.Limits{Rate: 0.01, Burst: 200}}}) // two messages
	sender, _ := registered(t, c, 0, "sender")
	receiver, _ := registered(t, c, 1, "receiver")
	sender.Send(numbered("receiver", 1))
	sender.Expect(`{"type":"receipt","n":1}`)
	c.HoldLog(0, true)
	sender.Send(numbered("receiver", 2))
	sender.Send(numbered("receiver", 2))
	sender.Expect(`{"type":"error","code":"UNAVAILABLE","n":2}`)
	c.HoldLog(0, false)
	sender.Expect(`{"type":"receipt","n":2}`)
	sender.Send(numbered("receiver", 3))
	sender.Expect(`{"type":"error","code":"RATE_LIMITED","n":3}`)
	got(receiver, 1, 2)
}
