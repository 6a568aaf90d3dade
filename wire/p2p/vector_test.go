package p2p

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/libp2p/go-libp2p/core/crypto"
	"github.com/libp2p/go-libp2p/core/peer"

	"github.com/agora-relay/agora"
)

// vector is one file of testdata/p2p. What it is about says the beginning of its name, behind "bad-" where it is refused with the number Error:
//
//	request-  what a stream has, the request that it is, and that as it is written, as a payload, and as the body of HTTP
//	path-     skills, a request, and what that asks of the agent's server
//	tool-, target-  a request, and the tool or the agent that it is for
//	fault-    an answer, and the failure that it is, if it is one
//	card-     a card, and what is read of it
//	shown-    an agent, or the cluster, and the card that is made of it
//	proof-    a binding, the statement that it is, the key that signs it where that is told, and the proof that is sent
type vector struct {
	About string `json:"about"`
	Error int    `json:"error"`

	Stream *string `json:"stream"`
	Base64 *string `json:"base64"` // what may not be text

	Request *vectorRequest `json:"request"`
	Written string         `json:"written"`
	Payload string         `json:"payload"`
	Body    *vectorBody    `json:"body"`

	Skills  []vectorSkill `json:"skills"`
	Slashes bool          `json:"slashes"`
	Target  string        `json:"target"`

	Tool *struct {
		Name      string `json:"name"`
		Arguments string `json:"arguments"`
	} `json:"tool"`
	Addressee *struct {
		ID   agora.AgentID `json:"id"`
		Path string        `json:"path"`
	} `json:"addressee"`

	Answer *string `json:"answer"`
	Fault  *struct {
		Number int        `json:"number"`
		Text   string     `json:"text"`
		Code   agora.Code `json:"code"`
	} `json:"fault"`

	Card    *string      `json:"card"`
	Read    *vectorCard  `json:"read"`
	Agent   *agora.Agent `json:"agent"`
	Cluster *ClusterCard `json:"cluster"`
	Shown   string       `json:"shown"`

	Binding *struct {
		Tenant string        `json:"tenant"`
		Agent  agora.AgentID `json:"agent"`
		Edge   string        `json:"edge"`
		Peer   string        `json:"peer"`
		Time   int64         `json:"time"`
	} `json:"binding"`
	Statement string `json:"statement"`
	Key       []byte `json:"key"` // private, as libp2p writes keys down
	Proof     string `json:"proof"`
}

// vectorRequest is a request whose raw members are texts, so that their bytes count.
type vectorRequest struct {
	Method string `json:"method"`
	Path   string `json:"path"`
	Params string `json:"params"`
	Input  string `json:"input_data"`
}

type vectorBody struct {
	JSON    string `json:"json"`
	Raw     string `json:"raw"`
	RawType string `json:"raw_type"`
}

type vectorSkill struct {
	Name        string   `json:"name,omitempty"`
	Description string   `json:"description,omitempty"`
	Path        string   `json:"path,omitempty"`
	Methods     []string `json:"methods,omitempty"`
	Schema      string   `json:"schema,omitempty"`
}

type vectorCard struct {
	Name         string        `json:"name,omitempty"`
	Description  string        `json:"description,omitempty"`
	Version      string        `json:"version,omitempty"`
	Capabilities []string      `json:"capabilities,omitempty"`
	Skills       []vectorSkill `json:"skills,omitempty"`
}

func (r *vectorRequest) request() *Request {
	q := &Request{Method: r.Method, Path: r.Path}
	if r.Params != "" {
		q.Params = json.RawMessage(r.Params)
	}
	if r.Input != "" {
		q.Input = json.RawMessage(r.Input)
	}
	return q
}

func requestOf(r Request) vectorRequest {
	return vectorRequest{r.Method, r.Path, string(r.Params), string(r.Input)}
}

func (v *vector) stream(t testing.TB) []byte {
	if v.Stream != nil {
		return []byte(*v.Stream)
	}
	b, err := base64.StdEncoding.DecodeString(*v.Base64)
	must(t, err)
	return b
}

func (v *vector) guard(t testing.TB) *Guard {
	var skills []Skill
	for _, s := range v.Skills {
		skills = append(skills, Skill{Path: s.Path, Methods: s.Methods})
	}
	g, err := NewGuard(skills)
	must(t, err)
	g.Slashes = v.Slashes
	return g
}

// load reads all vectors, each strictly.
func load(t testing.TB) map[string]*vector {
	t.Helper()
	all := map[string]*vector{}
	paths, err := filepath.Glob("../testdata/p2p/*.json")
	must(t, err)
	for _, path := range paths {
		b, err := os.ReadFile(path)
		must(t, err)
		d := json.NewDecoder(bytes.NewReader(b))
		d.DisallowUnknownFields()
		v := new(vector)
		if err := d.Decode(v); err != nil {
			t.Fatalf("%s: %v", path, err)
		}
		all[strings.TrimSuffix(filepath.Base(path), ".json")] = v
	}
	return all
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func asJSON(t testing.TB, v any) string {
	t.Helper()
	b, err := json.Marshal(v)
	must(t, err)
	return string(b)
}

// same reports as an error that two texts differ.
func same(t testing.TB, what, got, want string) {
	t.Helper()
	if got != want {
		t.Errorf("%s is\n %q, want\n %q", what, got, want)
	}
}

func TestVectors(t *testing.T) {
	kinds := map[string]func(*vector, *testing.T){
		"request": (*vector).testRequest, "path": (*vector).testPath, "tool": (*vector).testTool, "target": (*vector).testTarget,
		"fault": (*vector).testFault, "card": (*vector).testCard, "shown": (*vector).testShown,
		"proof": (*vector).testProof,
	}
	count := map[string]int{}
	for name, v := range load(t) {
		kind, _, _ := strings.Cut(strings.TrimPrefix(name, "bad-"), "-")
		count[kind]++
		t.Run(name, func(t *testing.T) {
			if v.About == "" || kinds[kind] == nil || strings.HasPrefix(name, "bad-") != (v.Error != 0) {
				t.Fatal("it says nothing of what it is about")
			}
			kinds[kind](v, t)
		})
	}
	if len(count) != len(kinds) {
		t.Errorf("there are vectors of the kinds %v", count)
	}
}

// refused reports whether the vector is of what is refused, and that it was with its number.
func (v *vector) refused(t *testing.T, err error) bool {
	t.Helper()
	if v.Error == 0 {
		must(t, err)
		return false
	}
	f, ok := err.(*Fault)
	if !ok || f.Code != v.Error {
		t.Fatalf("got %v, want a failure %d", err, v.Error)
	}
	if again, ok := ParseFault(AppendFault(nil, err)); !ok || again.Code != f.Code || again.Err.Message != f.Err.Message {
		t.Errorf("%v is written as %s", f, AppendFault(nil, err))
	}
	return true
}

func (v *vector) testRequest(t *testing.T) {
	r, err := Read(bytes.NewReader(v.stream(t)), 0)
	if v.refused(t, err) {
		return
	}
	same(t, "the request", asJSON(t, requestOf(r)), asJSON(t, v.Request))
	if v.Written != "" {
		same(t, "it as written", string(r.Append(nil)), v.Written)
	}
	if v.Payload != "" {
		same(t, "its payload", string(r.AppendPayload(nil, "r-1")), v.Payload)
	}
	body, media := r.Body(false)
	if v.Body == nil {
		if r.Input == nil && (body != nil || media != "") {
			t.Errorf("its body is %q of %q, want none", body, media)
		}
		return
	}
	same(t, "its body", string(body), v.Body.JSON)
	same(t, "its type", media, "application/json")
	body, media = r.Body(true)
	same(t, "its raw body", string(body), v.Body.Raw)
	same(t, "its raw type", media, v.Body.RawType)
}

func (v *vector) testPath(t *testing.T) {
	got, err := v.guard(t).Check(v.Request.request())
	if v.refused(t, err) {
		return
	}
	same(t, "the method", got.Method, v.Request.Method)
	uri := got.Path
	if got.Query != "" {
		uri += "?" + got.Query
	}
	same(t, "the target", uri, v.Target)
}

func (v *vector) testTool(t *testing.T) {
	name, arguments, called, err := v.Request.request().Tool()
	if v.refused(t, err) {
		return
	}
	if called != (v.Tool != nil) {
		t.Fatalf("it calls a tool: %v", called)
	}
	if called {
		same(t, "the tool", name, v.Tool.Name)
		same(t, "its arguments", string(arguments), v.Tool.Arguments)
	}
}

func (v *vector) testTarget(t *testing.T) {
	r := v.Request.request()
	id, inner, err := r.Target()
	if v.refused(t, err) {
		return
	}
	same(t, "the agent", string(id), string(v.Addressee.ID))
	want := *v.Request
	want.Path = v.Addressee.Path
	same(t, "its request", asJSON(t, requestOf(inner)), asJSON(t, want))
}

func (v *vector) testFault(t *testing.T) {
	f, ok := ParseFault([]byte(*v.Answer))
	if ok != (v.Fault != nil) {
		t.Fatalf("it is a failure: %v", ok)
	}
	if !ok {
		return
	}
	if f.Code != v.Fault.Number || f.Err.Message != v.Fault.Text || f.Err.Code != v.Fault.Code {
		t.Errorf("it is %v of %s, want %+v", f, f.Err.Code, *v.Fault)
	}
	if v.Written != "" {
		same(t, "it as written", string(AppendFault(nil, f)), v.Written)
	}
}

func (v *vector) testCard(t *testing.T) {
	c, err := ReadCard([]byte(*v.Card), 0)
	if v.refused(t, err) {
		return
	}
	got := vectorCard{c.Name, c.Description, c.Version, c.Capabilities, nil}
	for _, s := range c.Skills {
		got.Skills = append(got.Skills, vectorSkill{s.Name, s.Description, s.Path, s.Methods, string(s.Schema)})
	}
	same(t, "what is read", asJSON(t, got), asJSON(t, v.Read))
	same(t, "its body", string(c.Body), *v.Card)
	a := c.Agent("al")
	must(t, a.Check(1<<20))
}

func (v *vector) testShown(t *testing.T) {
	var got []byte
	if v.Agent != nil {
		got = AppendCard(nil, v.Agent)
	} else {
		got = v.Cluster.Append(nil)
	}
	same(t, "the card", string(got), v.Shown)
	c, err := ReadCard(got, 0)
	must(t, err)
	_, err = NewGuard(c.Skills)
	if v.Shown != "" && err != nil && !strings.Contains(err.Error(), "a slash in a segment") { // a name with a slash, which is read by its agent's edge alone
		t.Error(err)
	}
}

func (v *vector) testProof(t *testing.T) {
	got, err := ReadProof([]byte(v.Proof))
	if v.Error != 0 {
		if e := agora.AsError(err); e == nil || e.Code != agora.InvalidRequest {
			t.Fatalf("got %+v, %v, want INVALID_REQUEST", got, err)
		}
		return
	}
	must(t, err)
	b := Binding(*v.Binding)
	same(t, "the statement", string(b.Statement()), v.Statement)
	id, err := peer.Decode(b.Peer)
	must(t, err)
	public, err := id.ExtractPublicKey()
	if err != nil {
		public, err = crypto.UnmarshalPublicKey(got.PublicKey)
	}
	must(t, err)
	if good, err := public.Verify(b.Statement(), got.Signature); !good || err != nil || !id.MatchesPublicKey(public) || got.Edge != b.Edge || got.Time != b.Time {
		t.Errorf("the proof %+v does not hold: %v", got, err)
	}
	same(t, "the proof as written", asJSON(t, got), v.Proof)
	if v.Key == nil {
		return
	}
	key, err := crypto.UnmarshalPrivateKey(v.Key)
	must(t, err)
	signature, err := key.Sign(b.Statement())
	must(t, err)
	if good, err := public.Verify(b.Statement(), signature); !good || err != nil {
		t.Errorf("what the key signs does not hold: %v", err)
	}
}
