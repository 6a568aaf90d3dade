package sidecar_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/agora-relay/agora/internal/await"
	"github.com/agora-relay/agora/sidecar"
	wire "github.com/agora-relay/agora/wire/p2p"
)

const greeting = `{"body":"{\"a\": 1.0}","hello":"Ada B","method":"POST","type":"application/json"}`

func TestAPlainAgentIsAMemberAndItsSkillsAreAskedFromEverywhere(t *testing.T) {
	t.Parallel()
	s := newSite(t, 2)
	p := newPlain(t)
	s.run(p, nil)
	status, body := s.get("/agents/plain")
	if status != 200 || !strings.Contains(body, `{"name":"greet"}`) {
		t.Errorf("the directory has %d %s", status, body)
	}
	for _, c := range []*caller{s.calls(direct), s.calls(relayed)} {
		got, err := c.hands(`{"method":"post","path":"greet/{name}","params":{"name":"Ada B"},"input_data":{"a": 1.0}}`)
		if err != nil || strings.TrimSpace(got) != greeting {
			t.Errorf("handed over: %q %v, want %s", got, err, greeting)
		}
		got, err = c.hands(`{"method":"POST","path":"/tools/greet","input_data":{"name":"Bob"}}`)
		if want := `"hello":"Bob"`; err != nil || !strings.Contains(got, want) {
			t.Errorf("called as a tool: %q %v, want %s in it", got, err, want)
		}
	}
	if r := s.registered(); r.Agent != "plain" || r.TTL != 90 || len(r.Skills) != 11 || !slices.ContainsFunc(r.Addresses, relayed) || !direct(r.Addresses[0]) {
		t.Errorf("edges are told %+v", r)
	}
	byMail := func(what string) {
		t.Helper()
		status, body := s.post("/agents/plain/handoff?as=anna", `{"method":"POST","path":"/greet/{name}","params":{"name":"Ada B"},"input_data":{"a": 1.0}}`)
		if status != 200 || !strings.HasSuffix(body, strings.TrimPrefix(greeting, "{")) {
			t.Errorf("handed over %s: %d %s", what, status, body)
		}
		status, body = s.post("/agents/plain/tools/greet?as=anna", `{"name":"Bob"}`)
		if status != 200 || !strings.Contains(body, `"hello":"Bob"`) {
			t.Errorf("called as a tool %s: %d %s", what, status, body)
		}
	}
	await.True(t, "the directory shows a peer", s.showsPeer)
	byMail("by libp2p, of an edge")
	if status, body := s.get("/peers?agent_name=plain"); status != 200 || !strings.Contains(body, s.registered().Peer) || !strings.Contains(body, "greet") {
		t.Errorf("among the peers is %d %s", status, body)
	}
	if status, body := s.get("/agents/plain/card"); status != 200 || body != card {
		t.Errorf("its card is %d %s", status, body)
	}
	s.blind.Store(true) // as where edges have no door for peers
	await.True(t, "the directory shows its session", func() bool { return !s.showsPeer() && s.can("greet") })
	byMail("by mail")
}

func TestTheCardIsGivenByteForByteWhateverIsWrittenBefore(t *testing.T) {
	t.Parallel()
	s := newSite(t, 1)
	p := newPlain(t)
	s.run(p, nil)
	c := s.calls(direct)
	for _, before := range []string{"", "x", strings.Repeat("hello\n", 10000)} {
		stream := c.opens(wire.CardProtocol)
		var writing sync.WaitGroup
		writing.Go(func() { _, _ = io.WriteString(stream, before) }) // it may be over already
		b, err := io.ReadAll(stream)
		if err != nil || string(b) != card {
			t.Errorf("behind %d bytes it is %q %v", len(before), b, err)
		}
		_ = stream.Reset()
		writing.Wait()
	}
	p.stop()
	b, err := io.ReadAll(c.opens(wire.CardProtocol))
	if f, is := wire.ParseFault(b); err != nil || !is || f.Code != 502 {
		t.Errorf("without an agent it is %q %v, want 502", b, err)
	}
}

func TestACardThatHasChangedCounts(t *testing.T) {
	t.Parallel()
	s := newSite(t, 1)
	p := newPlain(t)
	s.run(p, nil)
	c := s.calls(direct)
	p.shows(`{"name":"other","skills":[{"name":"secret","path":"/secret"}]}`)
	await.True(t, "the directory has the new skill", func() bool {
		_, body := s.get("/agents/plain")
		return strings.Contains(body, `{"name":"secret"}`) && !strings.Contains(body, "greet")
	})
	if got, err := c.hands(`{"method":"GET","path":"/secret"}`); got != "secret" || err != nil {
		t.Errorf("the new skill answers %q %v", got, err)
	}
	got, _ := c.hands(`{"method":"POST","path":"/greet/x"}`)
	if f, is := wire.ParseFault([]byte(got)); !is || f.Code != 404 {
		t.Errorf("the old skill answers %q, want 404", got)
	}
	await.True(t, "edges are told of the new skill", func() bool { r := s.registered(); return slices.Equal(r.can(), []string{"secret"}) })
}

func TestCallersOfEveryKindAreAnswered(t *testing.T) {
	t.Parallel()
	s := newSite(t, 1)
	p := newPlain(t)
	s.run(p, nil)
	c := s.calls(relayed)
	request := `{"method":"POST","path":"/greet/{name}","params":{"name":"Ada B"},"input_data":{"a": 1.0}}`
	for name, write := range map[string]func(io.Writer, func() error) error{
		"half-closing": func(w io.Writer, end func() error) error {
			_, err := io.WriteString(w, request)
			return first(err, end())
		},
		"not closing":   func(w io.Writer, _ func() error) error { _, err := io.WriteString(w, request); return err },
		"writing more":  func(w io.Writer, _ func() error) error { _, err := io.WriteString(w, request+request); return err },
		"with newlines": func(w io.Writer, _ func() error) error { _, err := io.WriteString(w, "\n\n "+request+"\n"); return err },
		"byte by byte": func(w io.Writer, end func() error) error {
			for _, b := range []byte(request) {
				if _, err := w.Write([]byte{b}); err != nil {
					return err
				}
			}
			return end()
		},
	} {
		stream := c.opens(wire.HandoffProtocol)
		if err := write(stream, stream.CloseWrite); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		b, err := io.ReadAll(stream)
		if err != nil || strings.TrimSpace(string(b)) != greeting {
			t.Errorf("%s: answered %q %v", name, b, err)
		}
	}
	for request, code := range map[string]int{`{"method":`: 400, `[]`: 400, `{"method":"GET"}`: 400, `{"method":"GET","path":"/secret"}`: 404, `{"method":"GET","path":"/greet/x"}`: 405} {
		stream := c.opens(wire.HandoffProtocol)
		if _, err := io.WriteString(stream, request); err != nil {
			t.Fatal(err)
		}
		_ = stream.CloseWrite()
		b, err := io.ReadAll(stream)
		if f, is := wire.ParseFault(b); err != nil || !is || f.Code != code {
			t.Errorf("%s: answered %q %v, want %d", request, b, err, code)
		}
	}
}

func first(errs ...error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

func TestFiftyAreAnsweredAtOnce(t *testing.T) {
	t.Parallel()
	s := newSite(t, 1)
	p := newPlain(t)
	s.run(p, nil)
	c := s.calls(relayed)
	var all sync.WaitGroup
	for k := range 50 {
		all.Go(func() {
			stream := c.opens(wire.HandoffProtocol)
			fmt.Fprintf(stream, `{"method":"GET","path":"/slow","params":{"k":%d}}`, k)
			b, err := io.ReadAll(stream)
			if string(b) != "done" || err != nil {
				t.Errorf("request %d: answered %q %v", k, b, err)
			}
		})
	}
	for range 50 {
		await.Recv(t, "all are in progress at the same time", p.held)
	}
	close(p.hold)
	all.Wait()
}

func TestAPeerThatAsksForAllThereIsLeavesRoomForOthers(t *testing.T) {
	t.Parallel()
	s := newSite(t, 1)
	p := newPlain(t)
	s.run(p, func(c *sidecar.Config) { c.Limits.Concurrent = 16 })
	greedy, other := s.calls(direct), s.calls(direct)
	answers := make(chan string, 12)
	var all sync.WaitGroup
	defer all.Wait()
	for range 12 {
		stream := greedy.opens(wire.HandoffProtocol)
		io.WriteString(stream, `{"method":"GET","path":"/slow"}`)
		all.Go(func() {
			b, _ := io.ReadAll(stream) // what is missing is seen
			answers <- string(b)
		})
	}
	for range 7 {
		await.Recv(t, "as many as one peer may have are in progress", p.held)
	}
	if got, err := other.hands(`{"method":"POST","path":"/greet/x"}`); err != nil || !strings.Contains(got, `"hello":"x"`) {
		t.Errorf("another peer is answered %q %v", got, err)
	}
	if n := len(p.held); n != 0 {
		t.Errorf("one peer has %d requests in progress, want 7", 7+n)
	}
	close(p.hold)
	for range 12 {
		if got := await.Recv(t, "the rest is answered, too", answers); got != "done" {
			t.Errorf("answered %q, want done", got)
		}
	}
}

func TestATextAndAValueWithSlashesAreSentAsTheAgentWantsThem(t *testing.T) {
	t.Parallel()
	s := newSite(t, 1)
	p := newPlain(t)
	const request = `{"method":"POST","path":"/greet/{name}","params":{"name":"a/b"},"input_data":"so \"it\" is"}`
	r := s.run(p, nil)
	if got, err := s.calls(direct).hands(request); err != nil || !strings.Contains(got, `"code":400`) {
		t.Errorf("a value with a slash is answered %q %v, want 400", got, err)
	}
	if got, err := s.calls(direct).hands(strings.Replace(request, "a/b", "a", 1)); err != nil || !strings.Contains(got, `"body":"\"so \\\"it\\\" is\""`) {
		t.Errorf("a text is sent as %q %v, want JSON", got, err)
	}
	if err := r.stops(); err != nil {
		t.Fatal(err)
	}
	s.run(p, func(c *sidecar.Config) { c.Handoff = sidecar.Handoff{RawStringBody: true, Slashes: true} })
	const want = `{"body":"so \"it\" is","hello":"a/b","method":"POST","type":"text/plain; charset=utf-8"}`
	if payload, _, err := asks(t, s.dial("anna"), `{"action":"handoff",`+request[1:]); err != nil || !strings.HasSuffix(payload, want[1:]) {
		t.Errorf("by mail it is answered %s %v, want %s", payload, err, want)
	}
	if got, err := s.calls(direct).hands(request); err != nil || strings.TrimSpace(got) != want {
		t.Errorf("by libp2p it is answered %q %v, want %s", got, err, want)
	}
	if got, err := s.calls(direct).hands(`{"method":"POST","path":"/tools/greet","input_data":{"name":"a/b"}}`); err != nil || !strings.Contains(got, `"type":"application/json"`) {
		t.Errorf("arguments are sent as %q %v, want JSON", got, err)
	}
	for _, name := range []string{"a/../b", "..", "a//b", "/a", "a\\\\b"} {
		if got, err := s.calls(direct).hands(strings.Replace(request, "a/b", name, 1)); err != nil || !strings.Contains(got, `"code":400`) {
			t.Errorf("%s is answered %q %v, want 400", name, got, err)
		}
	}
}

func TestWhatTheAgentFailsAtIsToldByANumberAndNeverLooksWhole(t *testing.T) {
	t.Parallel()
	s := newSite(t, 1)
	p := newPlain(t)
	s.run(p, func(c *sidecar.Config) {
		c.Limits.Idle, c.Limits.Answer = 300*time.Millisecond, 256<<10
	})
	c := s.calls(direct)
	for path, code := range map[string]int{
		"/fail/301": 502, "/fail/304": 502, "/fail/401": 403, "/fail/404": 404, "/fail/422": 400, "/fail/500": 500, "/fail/503": 500, "/away": 502,
	} {
		got, err := c.hands(`{"method":"POST","path":"` + path + `"}`) // which no client of HTTP repeats
		if f, is := wire.ParseFault([]byte(got)); err != nil || !is || f.Code != code {
			t.Errorf("%s: answered %q %v, want %d", path, got, err, code)
		}
		if code < 502 && !strings.Contains(got, "it is so") {
			t.Errorf("%s: %q does not say why", path, got)
		}
	}
	for _, path := range []string{"/broken", "/large", "/silent"} {
		if got, err := c.hands(`{"method":"POST","path":"` + path + `"}`); err == nil {
			t.Errorf("%s: %d bytes look whole", path, len(got))
		}
	}
	if n := p.asked.Load(); n != 11 {
		t.Errorf("the agent was asked %d times, want 11: no redirect is followed", n)
	}
	p.stop()
	got, err := c.hands(`{"method":"POST","path":"/greet/x"}`)
	if f, is := wire.ParseFault([]byte(got)); err != nil || !is || f.Code != 502 {
		t.Errorf("without an agent: answered %q %v, want 502", got, err)
	}
	if payload, _, err := asks(t, s.dial("anna"), `{"action":"handoff","method":"POST","path":"/greet/x"}`); err != nil || !strings.Contains(payload, `"code":"STREAM_ABORTED"`) {
		t.Errorf("without an agent, by mail: %s %v", payload, err)
	}
	p.again()
	await.True(t, "the agent is asked again", func() bool {
		got, _ := c.hands(`{"method":"POST","path":"/greet/x"}`)
		return strings.Contains(got, `"hello":"x"`)
	})
}

func TestAnEndLeavesTheDirectoryAndRequestsInProgressAreAnswered(t *testing.T) {
	t.Parallel()
	s := newSite(t, 1)
	p := newPlain(t)
	r := s.run(p, func(c *sidecar.Config) { c.Limits.Grace = time.Hour })
	c := s.calls(direct)
	await.True(t, "the directory shows a peer", s.showsPeer)
	stream := c.opens(wire.HandoffProtocol)
	io.WriteString(stream, `{"method":"GET","path":"/slow"}`)
	mailed := make(chan string, 1)
	var asking sync.WaitGroup
	defer asking.Wait()
	asking.Go(func() {
		_, body := s.post("/agents/plain/handoff?as=anna", `{"method":"GET","path":"/slow"}`)
		mailed <- body
	})
	await.Recv(t, "one is in progress", p.held)
	await.Recv(t, "both are in progress", p.held)
	r.end()
	await.True(t, "the registration is withdrawn", func() bool { return !s.can("greet") })
	await.True(t, "nothing new is begun", func() bool {
		_, err := c.host.NewStream(await.Context(t), c.to, wire.HandoffProtocol)
		return err != nil
	})
	close(p.hold)
	if b, err := io.ReadAll(stream); string(b) != "done" || err != nil {
		t.Errorf("the request in progress is answered %q %v", b, err)
	}
	if got := await.Recv(t, "the request by mail is answered", mailed); !strings.Contains(got, "done") {
		t.Errorf("the request by mail is answered %s", got)
	}
	if err := r.stops(); err != nil {
		t.Errorf("it ends with %v", err)
	}
	await.True(t, "the agent is no member any more", func() bool { return !s.isMember("plain") })
}

func TestAnEndWaitsNoLongerThanTheGrace(t *testing.T) {
	t.Parallel()
	s := newSite(t, 1)
	p := newPlain(t)
	r := s.run(p, func(c *sidecar.Config) { c.Limits.Grace = 10 * time.Millisecond })
	c := s.calls(direct)
	stream := c.opens(wire.HandoffProtocol)
	io.WriteString(stream, `{"method":"GET","path":"/slow"}`)
	await.Recv(t, "one is in progress", p.held)
	if err := r.stops(); err != nil { // with the agent that never answers
		t.Errorf("it ends with %v", err)
	}
	if b, err := io.ReadAll(stream); err == nil {
		if _, is := wire.ParseFault(b); !is {
			t.Errorf("the request that was given up looks answered: %q", b)
		}
	}
}

func TestTheDeathOfAnEdgeIsSurvived(t *testing.T) {
	t.Parallel()
	s := newSite(t, 1)
	doomed := s.AddDoomed(time.Second)
	p := newPlain(t)
	s.run(p, nil)
	told := func(k int) bool {
		id := s.door(k).ID().String()
		return slices.ContainsFunc(s.registered().Addresses, func(a string) bool { return relayed(a) && strings.Contains(a, id) })
	}
	await.True(t, "there is a place at both edges", func() bool { return told(0) && told(doomed) })
	s.CutEdge(doomed)
	await.True(t, "the dead edge is named no more", func() bool { return !told(doomed) && told(0) })
	await.True(t, "a request by mail is answered", func() bool {
		status, body := s.post("/agents/plain/handoff?as=anna&deadline_ms=2000", `{"method":"POST","path":"/greet/x"}`)
		return status == 200 && strings.Contains(body, `"hello":"x"`)
	})
	if got, err := s.calls(relayed).hands(`{"method":"POST","path":"/greet/x"}`); err != nil || !strings.Contains(got, `"hello":"x"`) {
		t.Errorf("through the edge that is left: %q %v", got, err)
	}
}

func TestAnAgentThatStartsLateAndEdgesThatKnowNoPeersAreFine(t *testing.T) {
	t.Parallel()
	s := newSite(t, 1)
	s.blind.Store(true)
	p := newPlain(t)
	p.stop()
	var starting sync.WaitGroup
	side := s.run(p, func(c *sidecar.Config) {
		at := "http://" + c.Admin.Addr().String()
		starting.Go(func() {
			defer p.again()
			for path, want := range map[string]int{"/healthz": 200, "/readyz": 503, "/metrics": 200} {
				r, err := http.NewRequestWithContext(await.Context(t), http.MethodGet, at+path, nil)
				if err != nil {
					t.Error(err)
					return
				}
				resp, err := http.DefaultClient.Do(r)
				if err != nil || resp.StatusCode != want {
					t.Errorf("before the agent is there %s is %v %v, want %d", path, resp, err, want)
					return
				}
				resp.Body.Close()
			}
			http.DefaultClient.CloseIdleConnections()
		})
	})
	starting.Wait()
	status, body := s.post("/agents/plain/handoff?as=anna", `{"method":"GET","path":"/card"}`)
	var answered struct{ Name string }
	if err := json.Unmarshal([]byte(body), &answered); status != 200 || err != nil || answered.Name != "plain" {
		t.Errorf("its card by mail is %d %s", status, body)
	}
	s.blind.Store(false) // as when edges are upgraded
	await.True(t, "it has a place once edges are relays", func() bool { return slices.ContainsFunc(s.registered().Addresses, relayed) })
	if err := side.stops(); err != nil {
		t.Error(err)
	}
}

func TestARelayOnlyPeerHasNoAddressOfItsOwn(t *testing.T) {
	t.Parallel()
	s := newSite(t, 1)
	p := newPlain(t)
	at := s.door(0).Addresses()
	s.run(p, func(c *sidecar.Config) { c.Peer.Listen, c.Peer.Relays = "none", at[:1] })
	if got, err := s.calls(relayed).hands(`{"method":"POST","path":"/greet/x"}`); err != nil || !strings.Contains(got, `"hello":"x"`) {
		t.Errorf("handed over: %q %v", got, err)
	}
	if r := s.registered(); slices.ContainsFunc(r.Addresses, direct) || len(r.Addresses) != 1 {
		t.Errorf("edges are told %v", r.Addresses)
	}
}

func TestAnAgentThatDoesNotAnswerIsGivenUp(t *testing.T) {
	t.Parallel()
	s := newSite(t, 1)
	p := newPlain(t)
	s.run(p, func(c *sidecar.Config) { c.Limits.FirstByte = 50 * time.Millisecond })
	got, err := s.calls(direct).hands(`{"method":"POST","path":"/slow"}`)
	if f, is := wire.ParseFault([]byte(got)); err != nil || !is || f.Code != 504 {
		t.Errorf("answered %q %v, want 504", got, err)
	}
}
