package edge_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/agora-relay/agora/edge"
	"github.com/agora-relay/agora/internal/agoratest"
)

// A process that comes back without the session's token can't know what the one before it had said: it numbers from 1,
// and nothing of that is a repetition.
func TestWhoComesBackWithoutTheTokenIsANewProcessForWhatItSends(t *testing.T) {
	t.Parallel()
	c := start(t, agoratest.Options{})
	receiver, _ := registered(t, c, 1, "receiver")
	member, _ := registered(t, c, 2, "member")
	old, welcome := registered(t, c, 0, "sender")
	for _, a := range []*agoratest.Client{member, old} {
		a.Send(`{"type":"space.join","id":"j","space":"s"}`)
		a.Await(`{"type":"space.joined"}`)
	}
	member.Expect(`{"type":"space.members","joined":"sender"}`)
	stored(old, "receiver", 1)
	old.Send(
		`{"type":"send","to":"receiver","n":2,"stream_id":"numbered","stream":true}`,
		`{"type":"send_chunk","to":"receiver","n":3,"stream_id":"numbered","chunk":"a"}`,
		`{"type":"send","to":"member","stream_id":"indexed","stream":true,"index":0,"receipts":["stored"]}`,
		`{"type":"send_chunk","to":"member","stream_id":"indexed","index":1,"chunk":"a"}`,
		`{"type":"space.publish","id":"p","space":"s","data":{},"stream":true}`,
	)
	first := got(receiver, 1)
	receiver.Expect(`{"type":"message","stream_id":"numbered"}`, `{"type":"message_chunk","n":3}`)
	member.ExpectAll(`{"type":"message","stream_id":"indexed"}`, `{"type":"message_chunk","index":1}`, `{"type":"space.event.delta"}`)
	old.Drop()
	stored(member, "sender", 1) // while it is away
	again, anew := registered(t, c, 1, "sender")
	if anew.Has("resumed") {
		t.Errorf("welcomed by %s, though it came without a token", anew)
	}
	again.Expect(`{"type":"message","from":"member","payload":1}`) // what it receives continues
	receiver.Expect(`{"type":"error","code":"STREAM_ABORTED","from":"sender","stream_id":"numbered"}`)
	member.ExpectAll(`{"type":"error","code":"STREAM_ABORTED","from":"sender","stream_id":"indexed"}`, `{"type":"space.event.cancel"}`)
	again.Send(numbered("receiver", 1), `{"type":"send","to":"receiver","n":2,"payload":"b"}`,
		`{"type":"send","to":"receiver","n":3,"stream_id":"numbered","stream":true}`)
	again.Await(`{"type":"receipt","to":"receiver","n":3,"status":"stored"}`)
	second := receiver.Expect(`{"type":"message","n":1,"payload":1}`)
	receiver.Expect(`{"type":"message","n":2,"payload":"b"}`, `{"type":"message","n":3,"stream_id":"numbered"}`)
	if first.Text("session") == second.Text("session") {
		t.Errorf("both processes number in the session %q", first.Text("session"))
	}
	again.Send(`{"type":"send","to":"member","stream_id":"indexed","stream":true,"index":0}`, `{"type":"send_chunk","to":"member","stream_id":"indexed","index":1,"chunk":"b"}`)
	member.Expect(`{"type":"message","stream_id":"indexed","index":0}`, `{"type":"message_chunk","index":1,"chunk":"b"}`)
	again.Send(`{"type":"space.publish","n":1,"space":"s","data":{"text":"b"}}`) // it is a member still, and nobody was told otherwise
	member.Expect(`{"type":"space.event","data":{"from":"sender","text":"b","timestamp":"<any>"}}`)

	late := asked(t, c, 2, "sender", token(welcome)) // the process before it, which would number on
	late.Expect(`{"type":"error","code":"AGENT_EXISTS"}`)
	again.Send(`{"type":"space.leave","id":"l","space":"s"}`)
	again.Await(`{"type":"space.left"}`)
	member.Expect(`{"type":"space.members","left":"sender"}`)
	again.Drop()
	back, on := registered(t, c, 2, "sender", token(anew))
	if on.Raw("resumed") != "true" {
		t.Errorf("welcomed by %s", on)
	}
	back.Send(`{"type":"send_chunk","to":"receiver","n":4,"stream_id":"numbered","chunk":"c"}`)
	receiver.Expect(`{"type":"message_chunk","n":4,"chunk":"c"}`)
}

// A half-given answer of a process that is gone ends where another one takes its place: what this one answers is no
// rest of it.
func TestAHalfGivenAnswerIsAbortedWhenItsProcessIsReplaced(t *testing.T) {
	t.Parallel()
	c := start(t, agoratest.Options{Node: edge.Config{Confirm: time.Hour, Heartbeat: time.Hour, Timeout: 2 * time.Hour}}) // no pong proves that the question was read
	asker, _ := registered(t, c, 1, "asker")
	old, _ := registered(t, c, 0, "answerer")
	asker.Send(`{"type":"send","to":"answerer","n":1,"payload":{"request_id":"q"}}`)
	asker.Expect(`{"type":"receipt","n":1,"status":"stored"}`)
	old.Expect(`{"type":"message","from":"asker"}`)
	answer := func(a *agoratest.Client, word string) {
		a.Send(`{"type":"reply","to":"asker","n":1,"stream_id":"r","stream":true,"payload":{"request_id":"q"}}`)
		for n := range 2 {
			a.Send(fmt.Sprintf(`{"type":"reply_chunk","to":"asker","n":%d,"stream_id":"r","chunk":"%s"}`, n+2, word))
		}
	}
	answer(old, "old")
	asker.Await(`{"type":"reply_chunk","n":3,"chunk":"old"}`)
	old.Drop()
	again, _ := registered(t, c, 2, "answerer")
	again.Expect(`{"type":"message","from":"asker","redelivered":true}`)
	asker.Expect(`{"type":"error","code":"STREAM_ABORTED","from":"answerer","stream_id":"r"}`)
	answer(again, "new")
	again.Send(`{"type":"reply_end","to":"asker","n":4,"stream_id":"r"}`)
	asker.Expect(`{"type":"reply","stream_id":"r"}`, `{"type":"reply_chunk","chunk":"new"}`, `{"type":"reply_chunk","chunk":"new"}`, `{"type":"reply_end"}`)
}

// A number, or an index of a stream, that comes again with another body is no repetition: it is refused, and nobody is
// told that it is stored.
func TestANumberThatComesAgainWithAnotherBodyIsRefused(t *testing.T) {
	t.Parallel()
	c := start(t, agoratest.Options{})
	receiver, _ := registered(t, c, 1, "receiver")
	sender, welcome := registered(t, c, 0, "sender")
	stored(sender, "receiver", 1)
	streams := []string{"s0", "s1", "s2"} // each is sent another part for that which it begins with, the next, and its last
	for _, s := range streams {
		for _, part := range []string{`"send","stream":true,"index":0,"payload":"a","receipts":["stored"]`, `"send_chunk","index":1,"chunk":"b"`, `"send_chunk","index":2,"chunk":"c"`} {
			sender.Send(`{"to":"receiver","stream_id":"` + s + `","type":` + part + `}`)
		}
		sender.Await(`{"type":"receipt","stream_id":"` + s + `","index":2}`)
	}
	for k := range 2 { // by what the lane has stored, and by what a new holder reads
		sender.Send(`{"type":"send","to":"receiver","n":1,"payload":"other"}`)
		sender.Expect(`{"type":"error","code":"INVALID_REQUEST","n":1}`)
		sender.Send(numbered("receiver", 1))
		sender.Expect(`{"type":"receipt","to":"receiver","n":1,"status":"stored"}`)
		if k == 0 {
			sender.Drop()
			sender, _ = registered(t, c, 2, "sender", token(welcome))
		}
	}
	for _, s := range streams { // what is the same is no other
		sender.Send(`{"type":"send_chunk","to":"receiver","stream_id":"` + s + `","index":1,"chunk":"b"}`)
		sender.Expect(`{"type":"receipt","stream_id":"` + s + `","index":1,"status":"stored"}`)
	}
	for k, part := range []string{`"send","stream":true,"index":0,"payload":"other"`, `"send_chunk","index":1,"chunk":"other"`, `"send_chunk","index":2,"chunk":"other"`} {
		sender.Send(`{"to":"receiver","stream_id":"` + streams[k] + `","type":` + part + `}`)
		sender.Expect(`{"type":"error","code":"INVALID_REQUEST","stream_id":"` + streams[k] + `"}`)
	}
	got(receiver, 1)
	for range streams {
		receiver.Expect(`{"type":"message","payload":"a"}`, `{"type":"message_chunk","index":1,"chunk":"b"}`, `{"type":"message_chunk","index":2,"chunk":"c"}`)
	}
}
