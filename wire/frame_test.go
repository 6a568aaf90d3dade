package wire

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/agora-relay/agora"
)

func TestLimitsBoundWhatIsTaken(t *testing.T) {
	l := Limits{Depth: 3, Name: 4, Count: 2}
	for frame, want := range map[string]string{
		`{"type":"send","to":"a","payload":[[1]]}`:                                             "",
		`{"type":"send","to":"a","payload":[[[1]]]}`:                                           "nested too deeply",
		`{"type":"send","to":"a","payload":[{"x":{}}]}`:                                        "nested too deeply",
		`{"type":"send_end","to":"a","stream_id":"éééé"}`:                                      "",
		`{"type":"send_end","to":"a","stream_id":"ééééé"}`:                                     "stream_id is longer than 4 characters",
		`{"type":"agent.register","agent":{"id":"a","capabilities":["x","y"]}}`:                "",
		`{"type":"agent.register","agent":{"id":"a","capabilities":["x","y","z"]}}`:            "more than 2 entries",
		`{"type":"agent.register","agent":{"id":"a"},"spaces":{"x":1,"y":2,"z":3}}`:            "more than 2 entries",
		`{"type":"agent.register","agent":{"id":"a","type":"house"}}`:                          `"type" that is longer`,
		`{"type":"register","id":"a","endpoint":"` + strings.Repeat("e", maxLongText) + `"}`:   "",
		`{"type":"register","id":"a","endpoint":"` + strings.Repeat("e", maxLongText+1) + `"}`: "endpoint is longer",
	} {
		err := DecodeRequest([]byte(frame), new(Frame), l)
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("DecodeRequest(%.80s) = %v, want %q", frame, err, want)
		}
	}
}

func TestAReusedFrameKeepsNothingOfTheLastOne(t *testing.T) {
	frames := []string{
		`{"type":"send","to":"a","stream_id":"s","stream":true,"payload":{"x":1},"n":7,"index":3,"receipts":["acked"],"deadline_ms":5}`,
		`{"type":"send_chunk","to":"a","stream_id":"s","chunk":"x"}`,
		`{"type":"agent.register","id":"m","agent":{"id":"a"},"spaces":{"x":1},"last_seq":3}`,
		`{"type":"space.join","space":"x"}`,
		`{"type":"list"}`,
	}
	var reused Frame
	for _, frame := range frames {
		var fresh Frame
		must(t, DecodeRequest([]byte(frame), &reused, Limits{}))
		must(t, DecodeRequest([]byte(frame), &fresh, Limits{}))
		if got, want := fmt.Sprintf("%+v", reused), fmt.Sprintf("%+v", fresh); asJSON(t, reused) != asJSON(t, fresh) {
			t.Errorf("reused frame is\n %s, want\n %s", got, want)
		}
	}
}

func TestARefusedFrameKeepsTypeAndID(t *testing.T) {
	f := Frame{To: "old", Payload: []byte("1")}
	err := DecodeRequest([]byte(`{"type":"send","to":"a","id":"m-1","payload":2,"n":-1}`), &f, Limits{})
	if err == nil || asJSON(t, f) != asJSON(t, Frame{Type: "send", ID: "m-1"}) {
		t.Errorf("frame is %s, %v, want type and id alone", asJSON(t, f), err)
	}
}

func TestRefuseAnswersAFrame(t *testing.T) {
	f := Frame{Type: "send_chunk", ID: "m-1", To: "agent-9", StreamID: "s", N: 8}
	err := &agora.Error{Code: agora.RateLimited, Message: "slower", RetryAfter: 1500*time.Microsecond + 1}
	answer := f.Refuse(fmt.Errorf("somewhere: %w", err))
	want := `{"type":"error","code":"RATE_LIMITED","message":"slower","request_id":"m-1","to":"agent-9","stream_id":"s","retry_after_ms":2,"n":8}`
	if got := string(answer.Append(nil)); got != want {
		t.Errorf("answer is\n %s, want\n %s", got, want)
	}
	if answer = f.Refuse(fmt.Errorf("redis: secret")); answer.Code != string(agora.Unavailable) || strings.Contains(answer.Message, "secret") {
		t.Errorf("answer to a foreign error is %s: %s, want UNAVAILABLE and no cause", answer.Code, answer.Message)
	}
}

func TestParseReceipts(t *testing.T) {
	for s, want := range map[string]agora.Receipts{
		"": 0, "stored": agora.Stored, "acked, delivered,": agora.Acked | agora.Delivered,
	} {
		if got, err := ParseReceipts(s); err != nil || got != want {
			t.Errorf("ParseReceipts(%q) = %v, %v, want %v", s, got, err, want)
		}
	}
	if _, err := ParseReceipts("stored,read"); err == nil {
		t.Error("ParseReceipts takes a tier that there is not")
	}
}
