package agoratest

import "strconv"

// relayScenes are the message types of Agora relay, as its examples write them.
var relayScenes = []scenario{
	{"a one-shot reaches an agent at another edge", oneShot},
	{"a one-shot without payload is forwarded without payload", bareOneShot},
	{"stream false with a stream id is a one-shot without stream fields", falseStream},
	{"a stream is forwarded as start, chunks and end", streamed},
	{"chunks are forwarded before the stream has ended", chunksBeforeEnd},
	{"chunk texts stay as they are", chunkTexts},
	{"a reply carries the request id through", replied},
	{"a reply may stream, under the same id", repliedStream},
	{"a reply may stream under an id of its own, both at once", crossedStreams},
	{"an agent may send to itself", toItself},
}

func oneShot(s *scene) {
	a, b := s.pair()
	a.Send(`{
  "type": "send",
  "to": "agent-2",
  "payload": { "action": "query", "body": { "question": "..." } }
}`)
	b.ExpectText(`{
  "type": "message",
  "from": "agent-1",
  "payload": { "action": "query", "body": { "question": "..." } },
  "stream_id": "<none>", "stream": "<none>", "redelivered": "<none>", "seq": "<any>"
}`)
	a.Barrier() // nothing comes back unasked
}

func bareOneShot(s *scene) {
	a, b := s.pair()
	a.Send(`{"type":"send","to":"agent-2"}`)
	b.ExpectText(`{"type":"message","from":"agent-1","payload":"<none>","stream":"<none>"}`)
}

func falseStream(s *scene) {
	a, b := s.pair()
	a.Send(`{"type":"send","to":"agent-2","stream_id":"s","stream":false,"payload":1}`)
	b.ExpectText(`{"type":"message","from":"agent-1","payload":1,"stream_id":"<none>","stream":"<none>"}`)
	a.Send(`{"type":"send","to":"agent-2","stream_id":"s","payload":2}`)
	b.ExpectText(`{"type":"message","from":"agent-1","payload":2,"stream_id":"<none>","stream":"<none>"}`)
}

func streamed(s *scene) {
	a, b := s.pair()
	a.Send(
		`{"type": "send", "to": "agent-2", "stream_id": "stream-1", "stream": true, "payload": { "action": "query", "body": { "question": "..." } }}`,
		`{"type": "send_chunk", "to": "agent-2", "stream_id": "stream-1", "chunk": "This is"}`,
		`{"type": "send_chunk", "to": "agent-2", "stream_id": "stream-1", "chunk": " a segment"}`,
		`{"type": "send_end", "to": "agent-2", "stream_id": "stream-1"}`)
	b.ExpectText(
		`{"type": "message", "from": "agent-1", "stream_id": "stream-1", "stream": true, "payload": { "action": "query", "body": { "question": "..." } }}`,
		`{"type": "message_chunk", "from": "agent-1", "stream_id": "stream-1", "chunk": "This is"}`,
		`{"type": "message_chunk", "from": "agent-1", "stream_id": "stream-1", "chunk": " a segment"}`,
		`{"type": "message_end", "from": "agent-1", "stream_id": "stream-1"}`)
	a.Barrier()
}

func chunksBeforeEnd(s *scene) {
	a, b := s.pair()
	a.Send(`{"type":"send","to":"agent-2","stream_id":"s","stream":true}`)
	b.ExpectText(`{"type":"message","from":"agent-1","stream_id":"s","stream":true,"payload":"<none>"}`)
	last := uint64(0)
	for i := range 5 {
		a.Send(`{"type":"send_chunk","to":"agent-2","stream_id":"s","chunk":"` + strconv.Itoa(i) + `"}`)
		f := b.ExpectText(`{"type":"message_chunk","from":"agent-1","stream_id":"s","chunk":"` + strconv.Itoa(i) + `"}`)
		if f.Seq() <= last {
			s.Errorf("seq %d after %d, want it to grow", f.Seq(), last)
		}
		last = f.Seq()
	}
}

func chunkTexts(s *scene) {
	a, b := s.pair()
	a.Send(`{"type":"send","to":"agent-2","stream_id":"s","stream":true}`)
	b.Expect(`{"type":"message"}`)
	for _, text := range []string{`""`, `"  lead"`, `"\n"`, `"\u00e9é\/\ud83d\ude00😀"`, `"<script>&amp;"`, `"\u0000"`} {
		a.Send(`{"type":"send_chunk","to":"agent-2","stream_id":"s","chunk":` + text + `}`)
		if f := b.Expect(`{"type":"message_chunk","stream_id":"s"}`); f.Raw("chunk") != text {
			s.Errorf("chunk %s came as %s", text, f.Raw("chunk"))
		}
	}
}

func replied(s *scene) {
	a, b := s.pair()
	a.Send(`{"type":"send","to":"agent-2","payload":{"request_id":"r-1","action":"query"}}`)
	b.ExpectText(`{"type":"message","from":"agent-1","payload":{"request_id":"r-1","action":"query"}}`)
	b.Send(`{"type":"reply","to":"agent-1","payload":{"request_id":"r-1","answer":42}}`)
	a.ExpectText(`{"type":"reply","from":"agent-2","payload":{"request_id":"r-1","answer":42},"stream":"<none>","stream_id":"<none>"}`)
}

func repliedStream(s *scene) {
	a, b := s.pair()
	a.Send(
		`{"type":"send","to":"agent-2","stream_id":"stream-1","stream":true,"payload":{"request_id":"r-1"}}`,
		`{"type":"send_end","to":"agent-2","stream_id":"stream-1"}`)
	b.Expect(`{"type":"message","stream_id":"stream-1"}`, `{"type":"message_end","stream_id":"stream-1"}`)
	b.Send(
		`{"type":"reply","to":"agent-1","stream_id":"stream-1","stream":true,"payload":{"request_id":"r-1"}}`,
		`{"type":"reply_chunk","to":"agent-1","stream_id":"stream-1","chunk":"This is"}`,
		`{"type":"reply_chunk","to":"agent-1","stream_id":"stream-1","chunk":" the answer"}`,
		`{"type":"reply_end","to":"agent-1","stream_id":"stream-1"}`)
	a.ExpectText(
		`{"type":"reply","from":"agent-2","stream_id":"stream-1","stream":true,"payload":{"request_id":"r-1"}}`,
		`{"type":"reply_chunk","from":"agent-2","stream_id":"stream-1","chunk":"This is"}`,
		`{"type":"reply_chunk","from":"agent-2","stream_id":"stream-1","chunk":" the answer"}`,
		`{"type":"reply_end","from":"agent-2","stream_id":"stream-1"}`)
}

func crossedStreams(s *scene) {
	a, b := s.pair()
	a.Send(`{"type":"send","to":"agent-2","stream_id":"question","stream":true,"payload":{"request_id":"r-1"}}`)
	b.Expect(`{"type":"message","stream_id":"question"}`)
	b.Send(`{"type":"reply","to":"agent-1","stream_id":"answer","stream":true,"payload":{"request_id":"r-1"}}`)
	a.Expect(`{"type":"reply","stream_id":"answer"}`)
	for range 3 {
		a.Send(`{"type":"send_chunk","to":"agent-2","stream_id":"question","chunk":"?"}`)
		b.Send(`{"type":"reply_chunk","to":"agent-1","stream_id":"answer","chunk":"!"}`)
		b.Expect(`{"type":"message_chunk","stream_id":"question","chunk":"?"}`)
		a.Expect(`{"type":"reply_chunk","stream_id":"answer","chunk":"!"}`)
	}
	a.Send(`{"type":"send_end","to":"agent-2","stream_id":"question"}`)
	b.Expect(`{"type":"message_end","stream_id":"question"}`)
	b.Send(`{"type":"reply_end","to":"agent-1","stream_id":"answer"}`)
	a.Expect(`{"type":"reply_end","stream_id":"answer"}`)
}

func toItself(s *scene) {
	a := s.agent(0, "agent-1")
	a.Send(`{"type":"send","to":"agent-1","payload":"note"}`)
	a.Expect(`{"type":"message","from":"agent-1","payload":"note"}`)
}
