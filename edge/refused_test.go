package edge_test

import (
	"testing"

	"github.com/agora-relay/agora/internal/agoratest"
)

// A chunk whose number is refused for the moment ends its stream. Whoever sends it again under its number, as the number
// demands, must hear that: with neither receipt nor error it would be sent for ever.
func TestAPartSentAgainAfterARefusalLearnsThatItsStreamIsOver(t *testing.T) {
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
