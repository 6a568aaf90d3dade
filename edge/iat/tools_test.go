package iat_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/agora-relay/agora"
	"github.com/agora-relay/agora/internal/agoratest"
	"github.com/agora-relay/agora/internal/await"
)

// registers is how an agent declares tools without schemas, and a workspace where root is not empty.
func registers(agent, root string, tools ...string) string {
	var list []string
	for _, name := range tools {
		list = append(list, fmt.Sprintf(`{"name":%q}`, name))
	}
	more := ""
	if root != "" {
		more = `,"workspace_root":` + agoratest.Quote(root)
	}
	return said{id: "register", kind: "request", from: agent, to: "agora", payload: `{"action":"register","tools":[` + strings.Join(list, ",") + `]` + more + `}`}.String()
}

// enters has an agent enter by a socket, and declare tools.
func (s *site) enters(t *testing.T, k int, agent, root string, tools ...string) *agoratest.Client {
	t.Helper()
	c := s.socket(t, k, agent)
	c.Send(registers(agent, root, tools...))
	c.Expect(fmt.Sprintf(`{"payload":{"status":"registered","agent":%q,"tools":%d}}`, agent, len(tools)))
	return c
}

// lists waits until every edge lists the tools of an agent.
func (s *site) lists(t *testing.T, agent string, tools ...string) {
	t.Helper()
	for _, k := range s.Edges() {
		await.True(t, fmt.Sprintf("edge %d lists %v of %s", k, tools, agent), func() bool {
			a := s.ask(t, call{edge: k, path: "/a2a/tools?agent=" + agent})
			listed := strings.Count(a.body, `"agent":`) == len(tools)
			for _, name := range tools {
				listed = listed && strings.Contains(a.body, fmt.Sprintf(`"name":%q`, name))
			}
			return listed
		})
	}
}

func TestARegistrationThatIsPostedLastsForItsTimeAndThatOfASocketWithIt(t *testing.T) {
	t.Parallel()
	s := open(t, setup{Options: agoratest.Options{Edges: 2}})
	before := time.Now()
	a := s.ask(t, post(0, registers("eve", "", "dig")))
	var expires int64
	fmt.Sscan(fieldOf(a.body, "payload", "expires_at"), &expires)
	if lasts := time.Unix(expires, 0).Sub(before); lasts < 59*time.Minute || lasts > 62*time.Minute {
		t.Errorf("it lasts for %v, want an hour", lasts)
	}
	s.lists(t, "eve", "dig")
	d := s.downlink(t, 1, "eve")
	s.lists(t, "eve", "dig")
	s.ask(t, post(0, registers("eve", "", "dig", "hoe"))).is(t, 200, "{}")
	s.lists(t, "eve", "dig", "hoe")
	d.close()
	s.lists(t, "eve", "dig", "hoe")
	k := s.enters(t, 1, "kim", "", "knit")
	s.lists(t, "kim", "knit")
	k.Send(registers("kim", ""))
	s.lists(t, "kim")
	k.Send(registers("kim", "", "sew"))
	s.lists(t, "kim", "sew")
	k.Close(1000)
	s.lists(t, "kim")
}

func TestToolsOfEveryDialectAreFound(t *testing.T) {
	t.Parallel()
	s := open(t, setup{Options: agoratest.Options{Edges: 2}})
	s.enters(t, 0, "eve", "", "dig a hole")
	wes := agoratest.Connect(t, agoratest.Direct{}, s.URL(1), "", nil)
	wes.Send(`{"type":"agent.register","agent":{"id":"wes","tools":[{"name":"dig a well","description":"to the water","schema":{"type":"object"}}]}}`)
	wes.Expect(`{"type":"agent.registered"}`)
	s.ask(t, call{method: "PUT", path: "/agents/rose", body: `{"name":"rose","tools":[{"name":"dig a ditch"}]}`})
	s.lists(t, "eve", "dig a hole")
	s.lists(t, "wes", "dig a well")
	s.lists(t, "rose", "dig a ditch")
	s.ask(t, call{path: "/a2a/tools?q=dig"}).is(t, 200, `{"tools":[{"agent":"eve","name":"dig a hole"},{"agent":"rose","name":"dig a ditch"},`+
		`{"agent":"wes","name":"dig a well","description":"to the water","input_schema":{"type":"object"}}],"more":false}`)
	s.ask(t, call{path: "/a2a/tools?q=WATER"}).is(t, 200, `{"tools":[{"agent":"wes","name":"dig a well","description":"to the water","input_schema":{"type":"object"}}],"more":false}`)
	s.ask(t, call{path: "/a2a/tools?name=dig+a+hole&agent=wes"}).is(t, 200, `{"tools":[],"more":false}`)
}

// shop is where host has tools, and gives tasks to workers, each with a task of its own.
type shop struct {
	*testing.T
	*site
	host *agoratest.Client
}

func openShop(t *testing.T, s setup) *shop {
	s.Edges = 2
	at := open(t, s)
	host := at.enters(t, 0, "host", "", "dig", "hoe", "sow")
	at.lists(t, "host", "dig", "hoe", "sow")
	return &shop{t, at, host}
}

// gives has the host give a worker a task, with what it says of allowed tools; the worker hears it by hears.
func (s *shop) gives(worker, task, allowed string, hears func()) {
	s.Helper()
	s.host.Send(said{id: task, kind: "request", from: "host", to: worker, payload: `{"action":"execute","query":"work"` + allowed + `}`}.String())
	hears()
}

// calls has a worker call a tool of the host's by POST and at a socket; want is 200, or what it is refused with.
func (s *shop) calls(worker *agoratest.Client, name, task, tool string, want int) {
	s.Helper()
	for _, by := range []string{"post", "socket"} {
		id := fmt.Sprintf("%s-%s-%s-%s-%d", name, task, tool, by, time.Now().UnixNano())
		e := said{id: id, kind: "request", parent: task, from: name, to: "host", payload: `{"action":"call_tool","tool_name":` + agoratest.Quote(tool) + `}`}
		w := wrong{Code: map[int]agora.Code{403: agora.Forbidden, 404: agora.NotFound}[want], Parent: id, To: name}
		if by == "socket" {
			worker.Send(e.String())
		}
		if want != 200 && by == "socket" {
			faulty(s.T, string(worker.Take("a refusal")), w)
			continue
		}
		if want != 200 {
			s.ask(s.T, post(1, e.String())).refused(s.T, w)
			continue
		}
		var got <-chan answer
		if by == "post" {
			got = s.start(s.T, post(1, e.String()))
		}
		s.host.Expect(fmt.Sprintf(`{"header":{"msg_id":%q,%s"type":"request","from":%q,"to":"host"}}`, id, parentField(task), name))
		s.host.Send(said{id: "r" + id, kind: "response", parent: id, from: "host", to: name, payload: `"done"`}.String())
		if by == "post" {
			await.Recv(s.T, "an answer", got).is(s.T, 200, `{"payload":"done"}`)
		} else {
			worker.Expect(fmt.Sprintf(`{"header":{"msg_id":"<any>","parent_id":%q,"type":"response","from":"host","to":%q},"payload":"done"}`, id, name))
		}
	}
}

func parentField(task string) string {
	if task == "" {
		return ""
	}
	return `"parent_id":` + agoratest.Quote(task) + `,`
}

func TestToolsAreCalledAsTheTaskAllows(t *testing.T) {
	t.Parallel()
	s := openShop(t, setup{})
	w := s.socket(t, 1, "w")
	hears := func() { w.Expect(`{"payload":"<any>"}`) }
	s.calls(w, "w", "", "dig", 200) // who has no task is free
	s.calls(w, "w", "", "fly", 404)
	s.gives("w", "t1", `,"allowed_tools":["dig"]`, hears)
	s.calls(w, "w", "t1", "dig", 200)
	s.calls(w, "w", "t1", "hoe", 403)
	s.calls(w, "w", "", "dig", 200) // of some task
	s.calls(w, "w", "", "hoe", 403)
	s.calls(w, "w", "unknown", "hoe", 403)
	s.gives("w", "t2", `,"allowed_tools":["hoe"]`, hears)
	s.calls(w, "w", "t1", "hoe", 403)
	s.calls(w, "w", "t2", "hoe", 200)
	s.calls(w, "w", "", "hoe", 200)
	s.calls(w, "w", "unknown", "sow", 403)
	s.gives("w", "t3", `,"allowed_tools":[]`, hears)
	for _, tool := range []string{"dig", "hoe", "sow"} {
		s.calls(w, "w", "t3", tool, 403)
	}
	s.gives("w", "t4", ``, hears)
	s.calls(w, "w", "t4", "sow", 200)
	s.calls(w, "w", "", "sow", 200)
	s.calls(w, "w", "t1", "sow", 403)
	for _, task := range []string{"t1", "t2", "t3", "t4"} { // are done
		w.Send(said{id: "d" + task, kind: "response", parent: task, from: "w", to: "host", payload: `{}`}.String())
		s.host.Expect(fmt.Sprintf(`{"header":{"msg_id":"<any>","parent_id":%q,"type":"response","from":"w","to":"host"}}`, task))
	}
	await.True(t, "no task is open", func() bool {
		e := said{id: fmt.Sprint("free-", time.Now().UnixNano()), kind: "request", from: "w", to: "host", payload: `{"action":"call_tool","tool_name":"sow"}`, metadata: `"deadline_ms":1`}
		return s.ask(t, post(1, e.String())).status != 403
	})
}

func TestTasksHoldOnlyCallsOfWhoGaveThem(t *testing.T) {
	t.Parallel()
	s := openShop(t, setup{})
	w, v := s.socket(t, 1, "w"), s.socket(t, 1, "v")
	other := s.enters(t, 0, "other", "", "dig")
	s.lists(t, "other", "dig")
	other.Send(said{id: "o1", kind: "request", from: "other", to: "w", payload: `{"action":"execute","query":"work","allowed_tools":[]}`}.String())
	w.Expect(`{"payload":"<any>"}`)
	s.calls(w, "w", "", "dig", 200)
	s.calls(w, "w", "o1", "dig", 200) // which is none of the host's
	s.gives("w", "t1", `,"allowed_tools":[]`, func() { w.Expect(`{"payload":"<any>"}`) })
	s.calls(w, "w", "", "dig", 403)
	s.calls(w, "w", "o1", "dig", 403)
	s.calls(v, "v", "", "dig", 200)
	s.calls(v, "v", "t1", "dig", 200) // which is none of v's
}

// relayed opens a shop with a worker of the relay's dialect: calls has it call a tool, and answers has the host answer.
func relayed(t *testing.T) (s *shop, w *agoratest.Client, calls func(id, tool, more string), answers func()) {
	t.Helper()
	s = openShop(t, setup{})
	w = agoratest.Connect(t, agoratest.Direct{}, strings.TrimSuffix(s.URL(1), "/ws")+"/guarded", "agent_id=w", nil)
	w.Expect(`{"type":"agent.registered"}`)
	calls = func(id, tool, more string) {
		w.Send(fmt.Sprintf(`{"type":"call_tool","id":%q,"to":"host","tool_name":%q%s}`, id, tool, more))
	}
	answers = func() {
		id := fieldOf(string(s.host.Expect(`{"header":{"msg_id":"<any>","type":"request","from":"w","to":"host","timestamp":"<any>"}}`)), "header", "msg_id")
		s.host.Send(said{id: "a" + id, kind: "response", parent: id, from: "host", to: "w", payload: `7`}.String())
	}
	return s, w, calls, answers
}

func TestTasksHoldCallsByEveryDoor(t *testing.T) {
	t.Parallel()
	s, w, calls, answers := relayed(t)
	s.gives("w", "t1", `,"allowed_tools":["dig"]`, func() { w.Expect(`{"type":"message","from":"host","request_id":"t1"}`) })
	calls("c1", "dig", `,"parent_id":"t1"`)
	answers()
	w.Expect(`{"type":"tool.result","id":"c1","from":"host","body":7}`)
	for i, more := range []string{`,"parent_id":"t1"`, ``, `,"parent_id":"t9"`} {
		calls(fmt.Sprint("n", i), "hoe", more)
		w.Expect(fmt.Sprintf(`{"type":"error","code":"FORBIDDEN","request_id":"n%d"}`, i))
	}
	calls("n9", "fly", ``)
	w.Expect(`{"type":"error","code":"NOT_FOUND","request_id":"n9"}`)
	got := s.start(t, call{path: "/agents/host/tools/dig?as=w", body: `{}`})
	answers()
	await.Recv(t, "an answer", got).is(t, 200, `7`)
	for tool, status := range map[string]int{"hoe": 403, "fly": 404} {
		if a := s.ask(t, call{path: "/agents/host/tools/" + tool + "?as=w", body: `{}`}); a.status != status {
			t.Errorf("%s is answered %d %s", tool, a.status, a.body)
		}
	}
}

func TestTasksAreDoneByAnswersOfEveryDialect(t *testing.T) {
	t.Parallel()
	s, w, calls, answers := relayed(t)
	s.gives("w", "t1", `,"allowed_tools":["dig"]`, func() { w.Expect(`{"type":"message","from":"host","request_id":"t1"}`) })
	calls("held", "hoe", ``)
	w.Expect(`{"type":"error","code":"FORBIDDEN","request_id":"held"}`)
	w.Send(`{"type":"reply","to":"host","request_id":"t1","payload":"done"}`)
	s.host.Expect(`{"header":{"msg_id":"<any>","parent_id":"t1","type":"response","from":"w","to":"host","timestamp":"<any>"}}`)
	calls("free", "hoe", ``)
	answers()
	w.Expect(`{"type":"tool.result","id":"free","from":"host","body":7}`)
	done := s.start(t, post(0, said{id: "t2", kind: "request", from: "host", to: "w", payload: `{"action":"execute","query":"work","allowed_tools":[]}`}.String()))
	w.Expect(`{"type":"message","from":"host","request_id":"t2"}`)
	calls("held again", "hoe", ``)
	w.Expect(`{"type":"error","code":"FORBIDDEN","request_id":"held again"}`)
	w.Send(`{"type":"reply","to":"host","request_id":"t2","payload":"done"}`)
	await.Recv(t, "an answer", done).is(t, 200, `{"payload":"done"}`)
	calls("again", "hoe", ``)
	answers()
	w.Expect(`{"type":"tool.result","id":"again","from":"host","body":7}`)
}

func TestWorkspacesOfBothBindPaths(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for _, d := range []string{"a/b", "other"} {
		if err := os.MkdirAll(filepath.Join(dir, d), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	for link, to := range map[string]string{"a/b/out": "other", "a/b/in": "a/b"} {
		if err := os.Symlink(filepath.Join(dir, to), filepath.Join(dir, link)); err != nil {
			t.Fatal(err)
		}
	}
	for _, resolve := range []bool{true, false} {
		t.Run(fmt.Sprint("resolve=", resolve), func(t *testing.T) {
			s := open(t, setup{Options: agoratest.Options{Edges: 1}, resolve: resolve})
			s.enters(t, 0, "host", dir+"/a/b", "open")
			w := s.enters(t, 0, "w", dir+"/a")
			s.lists(t, "host", "open")
			for path, ok := range map[string]bool{
				dir + "/a/b/x": true, "x": true, dir + "/a/b/in/x": true, dir + "/a/b/out/x": !resolve, "out/x": !resolve,
				dir + "/a/x": false, dir + "/other/x": false, dir + "/a/b/../x": false, dir + "/a/bc": false, "../../other": false, "/": false, "/etc/passwd": false,
			} {
				e := said{id: fmt.Sprintf("p-%q", path), kind: "request", from: "w", to: "host", payload: `{"action":"call_tool","tool_name":"open","arguments":{"to":[{"file":` + agoratest.Quote(path) + `}]}}`}
				e.metadata = `"deadline_ms":1`
				a := s.ask(t, post(0, e.String()))
				if got := a.status != 403; got != ok {
					t.Errorf("%s: status %d %s", path, a.status, a.body)
				}
				if !ok {
					a.refused(t, wrong{Code: agora.Forbidden, Path: "/payload/arguments/to/0/file", Parent: e.id, To: "w"})
				}
			}
			goesOn(w)
		})
	}
}

func TestTheAddresseeIsToldOfTheWorkspaceThatWasDeclared(t *testing.T) {
	t.Parallel()
	s := open(t, setup{Options: agoratest.Options{Edges: 2}})
	bob := s.socket(t, 1, "bob")
	w := s.enters(t, 0, "w", "/work/w", "x")
	s.ask(t, post(0, registers("v", "/work/v"))).is(t, 200, "{}")
	s.lists(t, "w", "x")
	for i, metadata := range []string{``, `"workspace_root":"/"`, `"workspace_root":"/","x":1`, `"ttl":2`} {
		for name, says := range map[string]func(string){
			"w": func(e string) { w.Send(e) },
			"v": func(e string) { s.start(t, post(0, e)) },
		} {
			says(said{id: fmt.Sprint(name, i), kind: "request", from: name, to: "bob", metadata: metadata}.String())
			f := string(bob.Expect(fmt.Sprintf(`{"header":{"msg_id":"%s%d","type":"request","from":%q,"to":"bob"}}`, name, i, name)))
			if got := fieldOf(f, "metadata", "workspace_root"); got != "/work/"+name || strings.Count(f, "workspace_root") != 1 {
				t.Errorf("bob is told %s", f)
			}
		}
	}
}
