package aip

import (
	"encoding/base64"
	"encoding/json"
	"strings"
	"testing"

	"google.golang.org/grpc/codes"

	"github.com/agora-relay/agora"
)

func TestVectors(t *testing.T) {
	all := load(t)
	if len(all) < 60 {
		t.Errorf("there are %d vectors, want 60 or more", len(all))
	}
	for name, v := range all {
		t.Run(name, func(t *testing.T) {
			if v.About == "" {
				t.Fatal("it says nothing of what it is about")
			}
			v.run(t)
		})
	}
}

func (v *vector) run(t *testing.T) {
	switch {
	case v.Base64 != nil:
		v.testEnvelope(t)
	case v.Quests != nil && v.Put == nil:
		v.testQuests(t)
	case v.Put != nil:
		v.testPut(t)
	case v.Replies != nil:
		v.testReplies(t)
	case v.Responses != nil:
		v.testResponses(t)
	case v.Agent != nil || v.Toolbox != nil:
		v.testRegistered(t)
	case v.Listed != nil:
		v.testListed(t)
	case v.Call != nil && v.Called == nil:
		v.testCall(t)
	case v.Called != nil:
		v.testCalled(t)
	case v.Said != nil:
		v.testResult(t)
	case v.Told != nil:
		v.testAnswer(t)
	case v.Fault != nil || v.GRPC != nil:
		v.testCodes(t)
	default:
		v.testPayload(t)
	}
}

func (v *vector) testEnvelope(t *testing.T) {
	raw := unbase(t, *v.Base64)
	e, err := ReadEnvelope(raw)
	tool, toolErr := ReadToolEnvelope(raw)
	if v.Error != nil {
		v.Error.is(t, err)
		return
	}
	if v.Envelope != nil {
		must(t, err)
		is(t, (&Message{Sender: string(e.Sender), Receiver: string(e.Receiver), Session: string(e.Session), Status: e.Status}).Append(nil), v.Envelope, new(AgentMessage), new(AgentMessage))
	}
	if v.ToolEnvelope != nil {
		must(t, toolErr)
		is(t, encoded(t, &ToolRequest{
			SenderId: string(tool.Sender), ReceiverId: string(tool.Receiver), SessionId: string(tool.Session), ToolName: string(tool.Tool), Arguments: string(tool.Arguments),
		}), v.ToolEnvelope, new(ToolRequest), new(ToolRequest))
	}
	if r := v.Readdressed; r != nil {
		if got := base64.StdEncoding.EncodeToString(Readdress(raw, Route{r.Sender, r.Receiver}, e.Route())); got != r.Base64 {
			t.Errorf("readdressed it is %s, want %s", got, r.Base64)
		}
	}
}

// content returns items as a vector has them.
func content(t testing.TB, all []json.RawMessage) []Item {
	var raw []byte
	for _, i := range all {
		raw = appendField(raw, fieldContent, encoded(t, message(t, i, new(ContentItem))))
	}
	items, err := Items(raw)
	must(t, err)
	return items
}

func (v *vector) testPayload(t *testing.T) {
	items := content(t, v.Content)
	var body []byte
	if v.Payload != nil {
		body = []byte(*v.Payload)
	}
	if got := AppendPayload(nil, items); v.Way != "from" && (string(got) != string(body) || (got == nil) != (body == nil)) {
		t.Errorf("the payload is %s, want %s", got, body)
	}
	if got := ItemsOf(&agora.Message{Body: body}); v.Way != "to" && !sameItems(got, items) {
		t.Errorf("the content is %v, want %v", got, items)
	}
}

// quests returns messages as a vector has them, encoded.
func (v *vector) quests(t testing.TB, all []json.RawMessage) (encodedAll [][]byte) {
	for _, q := range all {
		encodedAll = append(encodedAll, encoded(t, message(t, q, new(AgentMessage))))
	}
	return encodedAll
}

func (v *vector) testQuests(t *testing.T) {
	var r QuestReader
	got := []vectorPart{}
	all := v.quests(t, v.Quests)
	for n, raw := range all {
		parts, err := r.Read(raw)
		if n == len(all)-1 && v.Error != nil {
			v.Error.is(t, err)
			return
		}
		must(t, err)
		for p := range parts {
			got = append(got, partOf(&parts[p]))
		}
	}
	if got, want := asJSON(t, got), asJSON(t, v.Parts); got != want {
		t.Errorf("the parts are\n %s, want\n %s", got, want)
	}
}

// said checks that messages are those of a vector.
func (v *vector) said(t testing.TB, got [][]byte, want []json.RawMessage) {
	t.Helper()
	if len(got) != len(want) {
		t.Fatalf("%d messages, want %d", len(got), len(want))
	}
	for n := range got {
		is(t, got[n], want[n], new(AgentMessage), new(AgentMessage))
	}
}

func (v *vector) testPut(t *testing.T) {
	var w *QuestWriter
	var got [][]byte
	for n := range v.Put {
		m := v.Put[n].message(t)
		if w == nil {
			w = NewQuestWriter(&m, agora.AgentID(v.Node), v.Name, 0)
		}
		quests, err := w.Write(&m)
		got = append(got, quests...)
		if n == len(v.Put)-1 && v.Error != nil {
			v.Error.is(t, err)
			break
		}
		must(t, err)
	}
	v.said(t, got, v.Quests)
}

func (v *vector) testReplies(t *testing.T) {
	w := NewResponseWriter("bob", "al", "s", 0)
	var got [][]byte
	for n := range v.Replies {
		if v.Replies[n].Stop {
			got = append(got, w.Stop()...)
			continue
		}
		m := v.Replies[n].message(t)
		responses, err := w.Write(&m)
		got = append(got, responses...)
		if n == len(v.Replies)-1 && v.Error != nil {
			v.Error.is(t, err)
			got = append(got, w.Fail(agora.AsError(err).Message)...)
			break
		}
		must(t, err)
	}
	v.said(t, got, v.Responses)
}

func (v *vector) testResponses(t *testing.T) {
	r := ResponseReader{To: "al", Request: "q"}
	got := []vectorPart{}
	all := v.quests(t, v.Responses)
	for n, raw := range all {
		parts, err := r.Read(raw)
		if n == len(all)-1 && v.Error != nil {
			v.Error.is(t, err)
			return
		}
		must(t, err)
		for p := range parts {
			got = append(got, partOf(&parts[p]))
		}
	}
	for _, m := range r.End() {
		got = append(got, partOf(&m))
	}
	if got, want := asJSON(t, got), asJSON(t, v.Reply); got != want {
		t.Errorf("the reply is\n %s, want\n %s", got, want)
	}
}

func (v *vector) testRegistered(t *testing.T) {
	var card agora.Agent
	var err error
	if v.Agent != nil {
		card, err = AgentCard(encoded(t, message(t, v.Agent, new(AgentInfo))))
	} else {
		card, err = ToolboxCard(encoded(t, message(t, v.Toolbox, new(ToolBoxInfo))))
	}
	if v.Error != nil {
		v.Error.is(t, err)
		return
	}
	must(t, err)
	must(t, card.Check(1<<18))
	got := vectorCard{
		ID: card.ID, Type: card.Type, Dialect: card.Dialect, Name: card.Name, Domain: card.Domain, Description: card.Description, Version: card.Version, Media: card.Registration.Media,
		Skills: skillsOf(card.Skills), Tools: skillsOf(card.Tools), MetadataText: strings.Replace(string(card.Metadata), Fingerprint(card.Registration.Body), "…", 1),
	}
	if got, want := asJSON(t, got), asJSON(t, v.Card); got != want {
		t.Errorf("the card is\n %s, want\n %s", got, want)
	}
	want := v.Agent
	p := PeerOf(&card, "elsewhere:1")
	if v.Toolbox != nil {
		is(t, encoded(t, p.GetToolboxInfo()), v.Toolbox, new(ToolBoxInfo), new(ToolBoxInfo))
		return
	}
	is(t, encoded(t, p.GetAgentInfo()), want, new(AgentInfo), new(AgentInfo))
}

func skillsOf(all []agora.Skill) (skills []vectorSkill) {
	for _, s := range all {
		v := vectorSkill{Name: s.Name, Description: s.Description}
		if schema := string(s.Schema); s.Schema != nil {
			v.Schema = &schema
		}
		skills = append(skills, v)
	}
	return skills
}

func skillsIn(all []vectorSkill) (skills []agora.Skill) {
	for _, v := range all {
		s := agora.Skill{Name: v.Name, Description: v.Description}
		if v.Schema != nil {
			s.Schema = json.RawMessage(*v.Schema)
		}
		skills = append(skills, s)
	}
	return skills
}

func (v *vector) testListed(t *testing.T) {
	c := v.Listed
	card := agora.Agent{
		ID: c.ID, Type: c.Type, Dialect: c.Dialect, Name: c.Name, Domain: c.Domain, Description: c.Description, Version: c.Version, Skills: skillsIn(c.Skills), Tools: skillsIn(c.Tools),
		Metadata: json.RawMessage(c.MetadataText),
	}
	is(t, encoded(t, PeerOf(&card, v.Address)), v.Peer, new(Peer), new(Peer))
}

func (v *vector) testCall(t *testing.T) {
	c := ToolCall{Name: v.Call.Tool}
	if v.Call.Arguments != nil {
		c.Arguments = json.RawMessage(*v.Call.Arguments)
	}
	is(t, AppendToolRequest(nil, Route{v.Call.Sender, v.Call.Toolbox}, v.Call.Session, c), v.Request, new(ToolRequest), new(ToolRequest))
}

func (v *vector) testCalled(t *testing.T) {
	e, err := ReadToolEnvelope(encoded(t, message(t, v.Called, new(ToolRequest))))
	must(t, err)
	c, err := e.Call()
	if v.Error != nil {
		v.Error.is(t, err)
		return
	}
	must(t, err)
	got := vectorCall{Sender: string(e.Sender), Toolbox: string(e.Receiver), Session: string(e.Session), Tool: c.Name}
	if s := string(c.Arguments); c.Arguments != nil {
		got.Arguments = &s
	}
	if got, want := asJSON(t, got), asJSON(t, v.Call); got != want {
		t.Errorf("the call is\n %s, want\n %s", got, want)
	}
}

func (v *vector) testResult(t *testing.T) {
	m, failed, err := ToolResult(encoded(t, message(t, v.Said, new(ToolResponse))))
	must(t, err)
	var got vectorResult
	if s := string(m.Body); m.Body != nil {
		got.Body = &s
	}
	if failed != nil {
		got.Failed = failed.Message
	}
	if got, want := asJSON(t, got), asJSON(t, v.Result); got != want {
		t.Errorf("the result is\n %s, want\n %s", got, want)
	}
}

func (v *vector) testAnswer(t *testing.T) {
	r := Route{"bob", "al"}
	if v.Failed != nil {
		is(t, AppendToolError(nil, r, "s", agora.Errorf(v.Failed.Code, "%s", v.Failed.Message)), v.Told, new(ToolResponse), new(ToolResponse))
		return
	}
	var a ToolAnswer
	for n := range v.Answer {
		m := v.Answer[n].message(t)
		must(t, a.Add(&m))
	}
	is(t, a.Append(nil, r, "s"), v.Told, new(ToolResponse), new(ToolResponse))
}

func (v *vector) testCodes(t *testing.T) {
	if v.Fault != nil {
		s := Status(agora.Errorf(v.Fault.Code, "%s", v.Fault.Message))
		if got := (vectorStatus{spelt(t, s.Code()), s.Message()}); got != *v.Status {
			t.Errorf("the status is %+v, want %+v", got, *v.Status)
		}
		return
	}
	var c codes.Code
	must(t, c.UnmarshalJSON([]byte(`"`+v.GRPC.Code+`"`)))
	if got := (vectorCode{v.GRPC.Code, FromCode(c), Deregisters(c)}); got != *v.GRPC {
		t.Errorf("got %+v, want %+v", got, *v.GRPC)
	}
}

// spelt returns a code by its name in the protocol.
func spelt(t testing.TB, c codes.Code) string {
	for _, name := range []string{
		"OK", "CANCELLED", "UNKNOWN", "INVALID_ARGUMENT", "DEADLINE_EXCEEDED", "NOT_FOUND", "ALREADY_EXISTS", "PERMISSION_DENIED", "RESOURCE_EXHAUSTED", "FAILED_PRECONDITION", "ABORTED",
		"OUT_OF_RANGE", "UNIMPLEMENTED", "INTERNAL", "UNAVAILABLE", "DATA_LOSS", "UNAUTHENTICATED",
	} {
		var named codes.Code
		must(t, named.UnmarshalJSON([]byte(`"`+name+`"`)))
		if named == c {
			return name
		}
	}
	return c.String()
}
