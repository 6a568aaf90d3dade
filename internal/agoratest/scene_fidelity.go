package agoratest

import (
	"fmt"
	"strings"
)

// fidelityScenes are payloads that arrive as they were sent.
var fidelityScenes = []scenario{
	{"payloads keep their bytes", payloadBytes},
	{"unknown fields of a frame are not forwarded, those of a payload are", unknownFields},
	{"keys may be escaped", escapedKeys},
	{"space data keeps its bytes but for from and timestamp", dataBytes},
	{"large payloads and chunks pass whole", largePayloads},
}

func payloadBytes(s *scene) {
	a, b := s.pair()
	for _, p := range []string{
		`null`, `true`, `""`, `"x"`, `[]`, `{}`, `0`, `-0`, `1.0`, `1.50e+02`, `1E400`, `123456789012345678901234567890`,
		"{ \"b\" :\t1 ,\n\"a\": [ 1,2 ] }", `{"a":1,"a":2}`, `{"\u0061":"\/"}`, `"\u00e9é\ud83d\ude00😀"`, `"<a href='x'>&"`,
		"\"\u2028\u2029\"", `{"type":"x","to":"y","from":"z","seq":7}`, `{"request_id":17}`,
	} {
		a.Send(`{"type":"send","to":"agent-2","payload":` + p + `}`)
		if f := b.Expect(`{"type":"message","from":"agent-1"}`); f.Raw("payload") != p {
			s.Errorf("payload %s came as %s", p, f.Raw("payload"))
		}
	}
	a.Barrier()
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

func largePayloads(s *scene) {
	a, b := s.pair()
	for i, size := range []int{100, 60_000, 65_536, 200_000, 1_000_000} {
		text := strings.Repeat(fmt.Sprint(i), size)[:size]
		a.Send(`{"type":"send","to":"agent-2","payload":"` + text + `"}`)
		if f := b.Expect(`{"type":"message"}`); f.Text("payload") != text {
			s.Errorf("payload of %d bytes came with %d", size, len(f.Text("payload")))
		}
	}
	a.Barrier()
}
