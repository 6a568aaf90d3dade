package ws_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/agora-relay/agora/internal/agoratest"
)

// bounded is a cluster with a sender at one edge, and at the other a receiver that takes frames of most bytes, both in a space.
func bounded(t *testing.T, most int) (a, b *agoratest.Client) {
	t.Helper()
	c := agoratest.Start(t, agoratest.Options{Edges: 2})
	a = agoratest.Connect(t, agoratest.Direct{}, c.URL(0), "agent_id=a", nil)
	b = agoratest.Connect(t, agoratest.Direct{}, c.URL(1), fmt.Sprint("agent_id=b&max_frame=", most), nil)
	a.Await(`{"type":"agent.registered"}`)
	b.Await(`{"type":"agent.registered"}`)
	return a, b
}

// takes takes frames until the last one, and holds that none is larger than most bytes.
func takes(t *testing.T, b *agoratest.Client, most int, last string) (all []agoratest.Frame) {
	t.Helper()
	for {
		f := b.Take("a frame")
		if len(f) > most {
			t.Errorf("a frame of %d bytes: %.200s", len(f), f)
		}
		if all = append(all, f); f.Match(last) == "" {
			return all
		}
	}
}

func TestWhatAReceiverCanNotTakeIsAGapToItAndAnErrorToItsSender(t *testing.T) {
	t.Parallel()
	const most = 10_000
	a, b := bounded(t, most)
	large := strings.Repeat("x", most)
	a.Send(fmt.Sprintf(`{"type":"send","id":"one","to":"b","receipts":["delivered","acked"],"payload":"%s"}`, large))
	a.ExpectAll(`{"type":"receipt","request_id":"one","status":"stored"}`, `{"type":"error","code":"MESSAGE_TOO_LARGE","request_id":"one","to":"b","seq":"<any>"}`)
	gap := b.Take("a gap")
	if d := gap.Match(`{"type":"gap","from_seq":"<any>","to_seq":"<any>"}`); d != "" || gap.Raw("from_seq") != gap.Raw("to_seq") {
		t.Fatalf("the receiver gets %s: %s", gap, d)
	}
	a.Send(`{"type":"send","id":"two","to":"b","receipts":["delivered"],"payload":"small"}`)
	a.ExpectAll(`{"type":"receipt","request_id":"two","status":"stored"}`, `{"type":"receipt","request_id":"two","status":"delivered"}`)
	f := b.Take("the next one")
	if f.Raw("payload") != `"small"` {
		t.Errorf("behind the gap comes %s", f)
	}
	b.Send(fmt.Sprintf(`{"type":"ack","seq":%d}`, f.Seq()))
	a.Send(`{"type":"send","id":"three","to":"b","receipts":["acked"],"payload":"last"}`)
	b.Expect(`{"type":"message","payload":"last"}`)
	a.Expect(`{"type":"receipt","request_id":"three","status":"stored"}`)
	a.Barrier() // nothing else was told of the first one
}

func TestAStreamWithAPartThatIsTooLargeForItsReceiverEndsForBoth(t *testing.T) {
	t.Parallel()
	const most = 10_000
	a, b := bounded(t, most)
	a.Send(`{"type":"send","to":"b","stream_id":"s","stream":true}`)
	a.Send(`{"type":"send_chunk","to":"b","stream_id":"s","chunk":"small"}`)
	a.Send(fmt.Sprintf(`{"type":"send_chunk","to":"b","stream_id":"s","chunk":"%s"}`, strings.Repeat("x", most)))
	a.Send(`{"type":"send_chunk","to":"b","stream_id":"s","chunk":"more"}`)
	b.Expect(`{"type":"message","stream_id":"s"}`)
	b.Expect(`{"type":"message_chunk","chunk":"small"}`)
	b.Expect(`{"type":"gap"}`)
	a.Expect(`{"type":"error","code":"MESSAGE_TOO_LARGE","to":"b","stream_id":"s","seq":"<any>"}`)
	a.Send(`{"type":"send_chunk","to":"b","stream_id":"s","chunk":"more"}`)
	a.Send(`{"type":"send_end","to":"b","stream_id":"s"}`)
	a.Send(`{"type":"send","to":"b","stream_id":"s","stream":true,"payload":"again"}`)
	b.Expect(`{"type":"message","stream_id":"s","payload":"again"}`)
	a.Send(`{"type":"send_end","to":"b","stream_id":"s"}`)
	b.Expect(`{"type":"message_end","stream_id":"s"}`)
	a.Barrier()
}

func TestARequestThatIsTooLargeForItsReceiverFailsAtOnce(t *testing.T) {
	t.Parallel()
	const most = 10_000
	a, b := bounded(t, most)
	large := strings.Repeat("x", most)
	a.Send(fmt.Sprintf(`{"type":"send","id":"q","to":"b","deadline_ms":3000,"payload":{"request_id":"r","text":"%s"}}`, large))
	a.ExpectAll(`{"type":"receipt","request_id":"q","status":"stored"}`, `{"type":"error","code":"MESSAGE_TOO_LARGE","request_id":"q","to":"b"}`)
	b.Expect(`{"type":"gap"}`)
	a.Send(fmt.Sprintf(`{"type":"handoff","id":"h","to":"b","method":"POST","path":"/x","input_data":"%s"}`, large))
	a.Expect(`{"type":"handoff.result","id":"h","code":413}`)
	b.Expect(`{"type":"gap"}`)
	b.Send(`{"type":"send","id":"q","to":"a","payload":{"request_id":"r"}}`)
	b.Expect(`{"type":"receipt","request_id":"q"}`)
	a.Expect(`{"type":"message","payload":{"request_id":"r"}}`)
	a.Send(fmt.Sprintf(`{"type":"reply","id":"p","to":"b","payload":{"request_id":"r","text":"%s"}}`, large))
	a.ExpectAll(`{"type":"receipt","request_id":"p","status":"stored"}`, `{"type":"error","code":"MESSAGE_TOO_LARGE","request_id":"p","to":"b"}`)
	got := takes(t, b, most, `{"type":"gap"}`)
	if len(got) == 1 {
		got = append(got, b.Take("why there is no answer"))
	}
	if d := got[0].Match(`{"type":"error","code":"MESSAGE_TOO_LARGE","request_id":"r","to":"a"}`); len(got) != 2 || d != "" && got[1].Match(`{"type":"error","code":"MESSAGE_TOO_LARGE","request_id":"r","to":"a"}`) != "" {
		t.Errorf("who asks gets %s", got)
	}
}

func TestAMemberGetsAGapForWhatIsTooLargeForIt(t *testing.T) {
	t.Parallel()
	const most = 10_000
	a, b := bounded(t, most)
	for _, m := range []*agoratest.Client{a, b} {
		m.Send(`{"type":"space.join","id":"j","space":"s"}`)
		m.Await(`{"type":"space.joined"}`)
	}
	large := strings.Repeat("x", most)
	a.Send(fmt.Sprintf(`{"type":"space.publish","id":"x","space":"s","data":{"other":"%s"}}`, large))
	b.Await(`{"type":"gap","space":"s"}`)
	a.Await(`{"type":"space.event","space":"s"}`)
	a.Send(`{"type":"space.publish","space":"s","stream":true,"id":"e","data":{"text":"so"}}`)
	event := a.Await(`{"type":"space.published","id":"e"}`).Text("event_id")
	b.Expect(`{"type":"space.event.delta"}`)
	a.Send(fmt.Sprintf(`{"type":"space.publish.delta","space":"s","event_id":"%s","data":{"text":"%s"}}`, event, large))
	a.Send(fmt.Sprintf(`{"type":"space.publish.done","space":"s","event_id":"%s"}`, event))
	b.Expect(`{"type":"gap","space":"s"}`)
	a.Await(`{"type":"space.event.done"}`)
	a.Send(`{"type":"space.publish","space":"s","data":{"other":"last"}}`)
	if f := b.Take("the next one"); f.Type() != "space.event" || !strings.Contains(string(f), `"other":"last"`) {
		t.Errorf("behind the gap comes %s", f)
	}
}

func TestALessThanSensibleMaxFrameIsRefused(t *testing.T) {
	t.Parallel()
	c := agoratest.Start(t, agoratest.Options{Edges: 1})
	for _, query := range []string{"agent_id=a&max_frame=0", "agent_id=a&max_frame=4095", "agent_id=a&max_frame=x", "agent_id=a&max_frame=-1"} {
		a := agoratest.Connect(t, agoratest.Direct{}, c.URL(0), query, nil)
		a.Expect(`{"type":"error","code":"INVALID_REQUEST"}`)
	}
	a := agoratest.Connect(t, agoratest.Direct{}, c.URL(0), "", nil)
	a.Send(`{"type":"register","id":"a","max_frame":4095}`)
	a.Expect(`{"type":"error","code":"INVALID_REQUEST"}`)
	a.Send(`{"type":"register","id":"a","max_frame":4096}`)
	a.Expect(`{"type":"registered"}`)
}

func TestAnAnswerThatIsTooLargeForWhoAsksIsAnError(t *testing.T) {
	t.Parallel()
	const most = 4096
	a, b := bounded(t, most)
	a.Send(fmt.Sprintf(`{"type":"agent.register","agent":{"id":"a","metadata":{"about":"%s"}}}`, strings.Repeat("x", most)))
	a.Expect(`{"type":"agent.registered"}`)
	b.Send(`{"type":"card.get","id":"c","to":"a"}`)
	b.Expect(`{"type":"error","code":"MESSAGE_TOO_LARGE","request_id":"c"}`)
}

// A client without a token comes back to another edge each time, and closes the connection at the frame that is more than it takes.
func TestAFrameThatClosesTwoConnectionsIsAGapInTheThird(t *testing.T) {
	t.Parallel()
	for _, k := range []struct{ name, frame, gap string }{
		{"a message", `{"type":"send","id":"%s","to":"b","payload":"%s"}`, `{"type":"gap","from_seq":"<any>","to_seq":"<any>"}`},
		{"an event", `{"type":"space.publish","id":"%s","space":"s","data":{"other":"%s"}}`, `{"type":"gap","from_seq":"<any>","to_seq":"<any>","space":"s"}`},
	} {
		t.Run(k.name, func(t *testing.T) {
			t.Parallel()
			c := agoratest.Start(t, agoratest.Options{Edges: 3})
			comes := func(k int, id string) *agoratest.Client {
				m := agoratest.Connect(t, agoratest.Direct{}, c.URL(k), "agent_id="+id, nil)
				m.Expect(`{"type":"agent.registered"}`)
				return m
			}
			a, b := comes(0, "a"), comes(0, "b")
			for _, m := range []*agoratest.Client{a, b} {
				m.Send(`{"type":"space.join","id":"j","space":"s"}`)
				m.Await(`{"type":"space.joined"}`)
			}
			for _, text := range []string{"small", strings.Repeat("x", 50_000), "behind"} {
				a.Send(fmt.Sprintf(k.frame, text[:5], text))
			}
			gaps := 0
			hears := func() (large bool) {
				for f := b.Take("a frame"); !strings.Contains(string(f), `"behind"`); f = b.Take("a frame") {
					large = large || len(f) > 50_000
					if f.Match(k.gap) == "" {
						gaps++
					}
				}
				return large
			}
			for i := range 2 {
				if !hears() || gaps > 0 {
					t.Fatalf("connection %d is not given the frame", i)
				}
				b.Close(1009)
				b = comes(i+1, "b")
			}
			if hears() || gaps != 1 {
				t.Errorf("the third connection is told %d gaps, want 1, and no frame that it can't take", gaps)
			}
			if k.name == "a message" {
				a.Await(`{"type":"error","code":"MESSAGE_TOO_LARGE","request_id":"xxxxx","to":"b"}`)
			}
		})
	}
}

// What a client was given that closes its connections for another reason comes again.
func TestAFrameThatClosesNoConnectionIsNotLeftOut(t *testing.T) {
	t.Parallel()
	c := agoratest.Start(t, agoratest.Options{Edges: 2})
	a := agoratest.Connect(t, agoratest.Direct{}, c.URL(0), "agent_id=a", nil)
	b := agoratest.Connect(t, agoratest.Direct{}, c.URL(1), "agent_id=b", nil)
	b.Expect(`{"type":"agent.registered"}`)
	a.Send(`{"type":"send","id":"x","to":"b","payload":"one"}`)
	b.Expect(`{"type":"message","payload":"one"}`)
	b.Close(1009)
	for range 3 {
		b = agoratest.Connect(t, agoratest.Direct{}, c.URL(1), "agent_id=b", nil)
		b.Await(`{"type":"message","payload":"one"}`)
		b.Close(3000)
	}
}

// Frames that are larger than a client takes come one behind the other: each closes two connections at most, and its sender is told once.
func TestAClientGetsPastManyFramesThatItCanNotTake(t *testing.T) {
	t.Parallel()
	c := agoratest.Start(t, agoratest.Options{Edges: 3})
	a := agoratest.Connect(t, agoratest.Direct{}, c.URL(0), "agent_id=a", nil)
	b := agoratest.Connect(t, agoratest.Direct{}, c.URL(0), "agent_id=b", nil)
	b.Await(`{"type":"agent.registered"}`)
	b.Close(3000)
	for _, size := range []int{40_000, 50_000, 30_000, 20_000} {
		a.Send(fmt.Sprintf(`{"type":"send","id":"%d","to":"b","payload":"%s"}`, size, strings.Repeat("x", size)))
		a.Await(fmt.Sprintf(`{"type":"receipt","request_id":"%d"}`, size))
	}
	a.Send(`{"type":"send","to":"b","payload":"last"}`)
	for k := 0; ; k++ {
		if k > 8 {
			t.Fatal("the client does not get to the last frame")
		}
		b = agoratest.Connect(t, agoratest.Direct{}, c.URL(k%3), "agent_id=b", nil)
		f := b.Take("a frame")
		for len(f) < 10_000 && f.Raw("payload") != `"last"` {
			f = b.Take("a frame")
		}
		if len(f) < 10_000 {
			break
		}
		b.Close(1009)
	}
	told := map[string]int{}
	for len(told) < 4 {
		if f := a.Take("an error"); f.Type() == "error" {
			told[f.Text("request_id")]++
		}
	}
	a.Send(`{"type":"send","id":"y","to":"b","payload":"y"}`)
	for f := a.Take("a receipt"); f.Text("request_id") != "y"; f = a.Take("a receipt") {
		told[f.Text("request_id")]++
	}
	for id, times := range told {
		if times != 1 {
			t.Errorf("of %s the sender is told %d times", id, times)
		}
	}
}
