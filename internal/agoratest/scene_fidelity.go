package agoratest

import (
	"strings"
)

// fidelityScenes are payloads that arrive as they were sent.
var fidelityScenes = []scenario{
	{"unknown fields of a frame are not forwarded, those of a payload are", unknownFields},
	{"keys may be escaped", escapedKeys},
	{"space data keeps its bytes but for from and timestamp", dataBytes},
	{"half a surrogate pair stays what it is", halfPairs},
}

func unknownFields(s *scene) {
	a, b := s.pair()
	a.Send(`{"jsonrpc":"2.0","type":"send","trace":{"x":1},"to":"agent-2","payload":{"trace":{"x":1}},"seq_":7,"timestamp":5}`)
	b.ExpectText(`{"type":"message","from":"agent-1","payload":{"trace":{"x":1}},
		"trace":"<none>","jsonrpc":"<none>","seq_":"<none>","timestamp":"<none>","to":"<none>"}`)
}

func escapedKeys(s *scene) {
	a, b := s.pair()
	a.Send(`{"t\u0079pe":"se\u006ed","t\u006f":"agent\u002d2","payl\u006fad":7}`)
	b.ExpectText(`{"type":"message","from":"agent-1","payload":7}`)
}

func dataBytes(s *scene) {
	a, b := s.pair()
	s.members("general", a, b)
	for _, p := range [][2]string{
		{"{ \"text\" : \"hi\" , \"n\": 1.0, \"timestamp\" : 1e3 }", "{ \"text\" : \"hi\" , \"n\": 1.0, \"timestamp\" : 1e3 }"},
		{`{"x":{"from":"me"},"timestamp":"yesterday"}`, `{"x":{"from":"me"},"timestamp":"yesterday"}`},
		{`{"fr\u006fm":"evil","text":"\/","from":"worse","timestamp":1}`, `{"text":"\/","timestamp":1}`},
	} {
		a.Send(`{"type":"space.publish","space":"general","data":` + p[0] + `}`)
		f := b.Expect(`{"type":"space.event","space":"general"}`)
		got := strings.Replace(strings.Replace(f.Raw("data"), `"from":"agent-1",`, "", 1), `"from":"agent-1" ,`, "", 1)
		if strings.Join(strings.Fields(got), "") != strings.Join(strings.Fields(p[1]), "") {
			s.Errorf("data %s came as %s", p[0], f.Raw("data"))
		}
		if strings.Count(f.Raw("data"), "agent-1") != 1 || strings.Contains(f.Raw("data"), "evil") || strings.Contains(f.Raw("data"), "worse") {
			s.Errorf("data %s came as %s, want from exactly once", p[0], f.Raw("data"))
		}
	}
}

// halfPairs are what is left of characters that were cut in two, as JavaScript and Python write them.
func halfPairs(s *scene) {
	a, b := s.pair()
	halves := []string{`"\ud83d"`, `"\ude00 and \uD83D"`, `"\uDE00"`}
	a.Send(`{"type":"send","to":"agent-2","stream_id":"s","stream":true,"payload":{"\ud83d":1}}`)
	b.Expect(`{"type":"message","stream_id":"s"}`)
	for _, half := range halves {
		a.Send(`{"type":"send_chunk","to":"agent-2","stream_id":"s","chunk":` + half + `}`)
		if f := b.Expect(`{"type":"message_chunk"}`); f.Raw("chunk") != half {
			s.Errorf("chunk %s came as %s", half, f.Raw("chunk"))
		}
	}
	s.members("general", a, b)
	a.Send(`{"type":"space.publish","id":"p","space":"general","stream":true,"data":{"timestamp":1,"text":"","\ud83d":"\ude00"}}`)
	if f := b.Expect(`{"type":"space.event.delta"}`); f.Raw("data") != `{"from":"agent-1","timestamp":1,"text":"","\ud83d":"\ude00"}` {
		s.Errorf("data came as %s", f.Raw("data"))
	}
	for _, half := range halves {
		a.Send(`{"type":"space.publish.delta","space":"general","event_id":"p","data":{"text":` + half + `}}`)
		if f := b.Expect(`{"type":"space.event.delta"}`); Frame(f.Raw("data")).Raw("text") != half {
			s.Errorf("delta %s came as %s", half, f.Raw("data"))
		}
	}
	a.Send(`{"type":"space.publish.done","space":"general","event_id":"p"}`)
	b.Expect(`{"type":"space.event.done"}`)
	cutHalves(s, a, b)
}

// cutHalves publishes a text that the edge cuts, of halves and of whole pairs.
func cutHalves(s *scene, a, b *Client) {
	text := strings.Repeat(`\ud83d\ud83d\ude00\\ud83d\ude00x`, 4000)
	a.Send(`{"type":"space.publish","space":"general","data":{"text":"` + text + `"}}`)
	got := ""
	for f := b.Expect(`{"type":"space.event.delta"}`); f.Type() == "space.event.delta"; f = b.Take("a delta") {
		got += strings.Trim(Frame(f.Raw("data")).Raw("text"), `"`)
	}
	if got != text {
		s.Errorf("a text of %d bytes, half of it halves of pairs, came as %d others", len(text), len(got))
	}
}
