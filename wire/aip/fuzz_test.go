package aip

import (
	"bytes"
	"encoding/json"
	"testing"
	"unicode/utf8"

	"google.golang.org/protobuf/proto"

	"github.com/agora-relay/agora"
)

// FuzzEnvelope holds that reading routing fields never panics, reads what protobuf reads, and that a message that is readdressed is the same but for that.
func FuzzEnvelope(f *testing.F) {
	for _, v := range load(f) {
		if v.Base64 != nil {
			f.Add(unbase(f, *v.Base64))
		}
		for _, raw := range v.quests(f, append(v.Quests, v.Responses...)) {
			f.Add(raw)
		}
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		sameAsProto(t, raw)
		var before, after AgentMessage
		e, err := ReadEnvelope(raw)
		if err != nil || proto.Unmarshal(raw, &before) != nil {
			return
		}
		got := Readdress(raw, Route{"al", "bob"}, e.Route())
		before.SenderId, before.ReceiverId = "al", "bob"
		if !bytes.HasPrefix(got, raw) || proto.Unmarshal(got, &after) != nil || !proto.Equal(&before, &after) {
			t.Fatalf("%x is readdressed as %x", raw, got)
		}
	})
}

// FuzzPayload holds that content never panics, whatever it came from, and that content is the same after it was a payload, and after it was chunks.
func FuzzPayload(f *testing.F) {
	for _, v := range load(f) {
		if v.Payload != nil {
			f.Add([]byte(*v.Payload), "")
		}
		for _, p := range append(v.Put, v.Replies...) {
			m := p.message(f)
			f.Add(m.Body, m.Media)
		}
	}
	f.Fuzz(func(t *testing.T, body []byte, media string) {
		if media == "" && (!json.Valid(body) || !utf8.Valid(body)) || media == agora.MediaText && !utf8.Valid(body) {
			return // no message of the core has such a body
		}
		m := agora.Message{Part: agora.Chunk, Body: body, Media: media}
		for _, items := range [][]Item{ItemsOf(&m), joinedOf(t, m)} {
			keepsContent(t, items)
		}
	})
}

// joinedOf returns the content of a lone chunk.
func joinedOf(t *testing.T, m agora.Message) []Item {
	j := joiner{most: MaxMessage}
	items, err := j.add(&m)
	must(t, err)
	return append(items, j.flush()...)
}

// keepsContent checks that content comes back as it was from wherever it goes.
func keepsContent(t *testing.T, items []Item) {
	if len(items) == 0 {
		return
	}
	payload := AppendPayload(nil, items)
	if !json.Valid(payload) || !utf8.Valid(payload) {
		t.Fatalf("%q is the payload %q", items, payload)
	}
	if got := ItemsOf(&agora.Message{Body: payload}); !sameItems(got, items) {
		t.Fatalf("%q is the payload %s, which is %q", items, payload, got)
	}
	raw := (&Message{Content: items}).Append(nil)
	if got, err := Items(raw); err != nil || !sameItems(got, items) {
		t.Fatalf("%q is encoded as %x, which is %q, %v", items, raw, got, err)
	}
	j := joiner{most: MaxMessage}
	var got []Item
	for _, m := range new(cutter).chunks(nil, agora.Message{}, items) {
		more, err := j.add(&m)
		must(t, err)
		got = append(got, more...)
	}
	if got = append(got, j.flush()...); !sameItems(withoutCuts(got), withoutCuts(items)) {
		t.Fatalf("%q comes from chunks as %q", items, got)
	}
}

// FuzzRegistration holds that reading what a node registers with never panics, and that a card that is one is listed as what was registered.
func FuzzRegistration(f *testing.F) {
	for _, v := range load(f) {
		if v.Agent != nil {
			f.Add(encoded(f, message(f, v.Agent, new(AgentInfo))))
		}
		if v.Toolbox != nil {
			f.Add(encoded(f, message(f, v.Toolbox, new(ToolBoxInfo))))
		}
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		if r, err := ReadUpdate(raw); err == nil && (r.Media == "") != (r.Body == nil) && len(r.Body) > 0 {
			t.Fatalf("%x is %+v", raw, r)
		}
		if card, err := AgentCard(raw); err == nil {
			var info AgentInfo
			must(t, proto.Unmarshal(raw, &info))
			if got := PeerOf(&card, "").GetAgentInfo(); !proto.Equal(got, &info) {
				t.Fatalf("%v is listed as %v", &info, got)
			}
			checkCard(t, &card, info.GetAddress())
		}
		if card, err := ToolboxCard(raw); err == nil {
			var info ToolBoxInfo
			must(t, proto.Unmarshal(raw, &info))
			if got := PeerOf(&card, "").GetToolboxInfo(); !proto.Equal(got, &info) {
				t.Fatalf("%v is listed as %v", &info, got)
			}
			checkCard(t, &card, info.GetAddress())
		}
	})
}

// checkCard checks that a card can be kept, told and listed without its registration.
func checkCard(t *testing.T, card *agora.Agent, address string) {
	t.Helper()
	if a := About(card); a.Address != address || a.Fingerprint != Fingerprint(card.Registration.Body) || !json.Valid(card.Metadata) {
		t.Fatalf("%s says %+v", card.Metadata, a)
	}
	for _, s := range append(card.Skills, card.Tools...) {
		if s.Name == "" || s.Schema != nil && !json.Valid(s.Schema) {
			t.Fatalf("it can %+v", s)
		}
	}
	light := *card
	light.Registration = agora.Registration{}
	if p := PeerOf(&light, ""); p.GetAgentInfo().GetAddress() != address && p.GetToolboxInfo().GetAddress() != address {
		t.Fatalf("without its registration it is listed as %v", p)
	}
}
