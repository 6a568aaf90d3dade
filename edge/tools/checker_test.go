package tools

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/agora-relay/agora"
	"github.com/agora-relay/agora/presence"
)

// code returns the code of an error; "" for none.
func code(err error) agora.Code {
	if err == nil {
		return ""
	}
	return agora.AsError(err).Code
}

func TestACallIsCheckedAgainstWhatItsCalleeHasDeclared(t *testing.T) {
	callee := agora.Agent{ID: "host", Tools: []agora.Skill{
		{Name: "read", Schema: []byte(`{"required":["path"]}`)}, {Name: "any"}, {Name: "odd", Schema: []byte(`{"type":"none"}`)},
	}}
	c := New(Config{})
	for _, q := range []struct {
		name, arguments string
		want            agora.Code
	}{
		{"read", `{"path":1}`, ""}, {"read", `{}`, agora.InvalidRequest}, {"read", `nonsense`, agora.InvalidRequest},
		{"any", `5`, ""}, {"odd", `5`, ""}, {"write", `{}`, agora.NotFound}, {strings.Repeat("x", 1000), `{}`, agora.NotFound},
	} {
		err := c.CheckCall(callee, q.name, []byte(q.arguments))
		if got := code(err); got != q.want || err != nil && len(err.Error()) > 400 {
			t.Errorf("%.20s(%s): %v, want %q", q.name, q.arguments, err, q.want)
		}
	}
	if err := c.CheckCall(agora.Agent{ID: "bare"}, "any", nil); err != nil {
		t.Errorf("an agent without tools: %v", err)
	}
	if err := c.CheckCall(callee, "read", nil); code(err) != agora.InvalidRequest {
		t.Errorf("no arguments: %v", err)
	}
	if s := c.Stats(); s.Unknown.Load() != 2 || s.Schema.Load() != 3 || s.Allowed.Load()+s.Path.Load() != 0 {
		t.Errorf("counted %d unknown and %d that do not fit, want 2 and 3", s.Unknown.Load(), s.Schema.Load())
	}
	if got := c.CheckCall(callee, "write", nil).Error(); got != "NOT_FOUND: Agent 'host' has no tool 'write'" {
		t.Errorf("the sentence is %q", got)
	}
}

func TestDeclaredToolsAreCheckedAndTheErrorNamesWhich(t *testing.T) {
	tools := []agora.Skill{{Name: "a"}, {Name: "b", Schema: []byte(`{}`)}, {Name: "c", Schema: []byte(`{"properties":{"x":{"type":5}}}`)}}
	c := New(Config{Tools: 3, Schema: 100})
	if err := c.CheckDeclared(tools[:2]); err != nil {
		t.Error(err)
	}
	for _, q := range []struct {
		tools        []agora.Skill
		path, begins string
	}{
		{tools, "/payload/tools/2/input_schema", "tools[2].input_schema at /properties/x/type: "},
		{append(tools[:2:2], tools[:2]...), "/payload/tools", "tools has more than 3 entries"},
		{[]agora.Skill{{Name: "a", Schema: []byte(`{"title":"` + strings.Repeat("x", 100) + `"}`)}}, "/payload/tools/0/input_schema", "tools[0].input_schema: larger than 100 bytes"},
	} {
		r, ok := errors.AsType[*Refusal](c.CheckDeclared(q.tools))
		if !ok || r.Path != q.path || r.Err.Code != agora.InvalidRequest || !strings.HasPrefix(r.Err.Message, q.begins) {
			t.Errorf("got %v at %v, want %q at %s", r, ok, q.begins, q.path)
		}
	}
}

func TestASchemaIsCompiledOnceForAllWhoAsk(t *testing.T) {
	c := New(Config{})
	var all [8]*Schema
	var done sync.WaitGroup
	for i := range all {
		done.Go(func() { all[i], _ = c.Compile([]byte(`{"type":"object"}`)) })
	}
	done.Wait()
	for _, s := range all {
		if s == nil || s != all[0] {
			t.Fatalf("compiled to %p and %p, want one", s, all[0])
		}
	}
}

func TestSchemasThatWereUsedTheLongestAgoAreForgotten(t *testing.T) {
	c := New(Config{}).schemas
	first, _ := c.compile([]byte(`{"title":"first"}`))
	for i := range 2 * maxKept {
		c.compile(fmt.Appendf(nil, `{"title":"%d"}`, i))
		if i%1000 == 0 {
			if again, _ := c.compile([]byte(`{"title":"first"}`)); again != first {
				t.Fatal("one that is used is forgotten")
			}
		}
	}
	large := strings.Repeat(" ", 60<<10)
	for i := range 400 {
		c.compile(fmt.Appendf(nil, `%s{"title":"%d"}`, large, i))
	}
	if c.order.Len() > maxKept || c.size > maxKeptBytes || len(c.byKey) != c.order.Len() {
		t.Errorf("%d are kept of %d bytes, want at most %d of %d", c.order.Len(), c.size, maxKept, maxKeptBytes)
	}
}

func TestACallIsHeldToWhatItsTaskAllows(t *testing.T) {
	of := func(caller agora.AgentID, request string, tools ...string) presence.Execute {
		return presence.Execute{Callee: "sub", Caller: caller, Request: request, Limited: tools != nil, Tools: tools}
	}
	reads, writes, nothing, all := of("host", "1", "read"), of("host", "2", "write", "list"), of("host", "3", []string{}...), of("host", "4")
	other := of("else", "5")
	for i, c := range []struct {
		open         []presence.Execute
		parent, tool string
		allowed      bool
	}{
		{nil, "", "read", true},
		{nil, "9", "read", true},
		{[]presence.Execute{other}, "", "read", true},
		{[]presence.Execute{reads}, "1", "read", true},
		{[]presence.Execute{reads}, "1", "write", false},
		{[]presence.Execute{reads}, "1", "Read", false},
		{[]presence.Execute{reads}, "", "read", true},
		{[]presence.Execute{reads}, "", "write", false},
		{[]presence.Execute{reads}, "9", "write", false},
		{[]presence.Execute{reads, writes}, "", "write", true},
		{[]presence.Execute{reads, writes}, "1", "write", false},
		{[]presence.Execute{reads, all}, "", "write", true},
		{[]presence.Execute{reads, all}, "1", "write", false},
		{[]presence.Execute{reads, all}, "4", "write", true},
		{[]presence.Execute{nothing}, "3", "read", false},
		{[]presence.Execute{nothing}, "", "read", false},
		{[]presence.Execute{reads, other}, "5", "write", false}, // a task of somebody else's
	} {
		err := New(Config{}).CheckAllowed(c.open, Asked{Caller: "sub", Addressee: "host", Parent: c.parent, Tool: c.tool})
		if (err == nil) != c.allowed || err != nil && (code(err) != agora.Forbidden || !strings.Contains(err.Error(), "'"+c.tool+"'")) {
			t.Errorf("case %d: %v, want allowed: %t", i, err, c.allowed)
		}
	}
}

func TestToolsAreFound(t *testing.T) {
	agents := []agora.Agent{
		{ID: "b", Tools: []agora.Skill{{Name: "write", Description: "Writes a FILE"}, {Name: "read", Description: "reads a file"}}},
		{ID: "a", Tools: []agora.Skill{{Name: "read", Description: "liest eine große Datei"}}},
		{ID: "c", Skills: []agora.Skill{{Name: "read"}}},
	}
	for _, c := range []struct {
		q    Query
		want string
	}{
		{Query{}, "a.read b.read b.write"},
		{Query{Name: "read"}, "a.read b.read"},
		{Query{Name: "rea"}, ""},
		{Query{Agent: "b"}, "b.read b.write"},
		{Query{Q: "file"}, "b.read b.write"},
		{Query{Q: "file  WRIT"}, "b.write"},
		{Query{Q: "file none"}, ""},
		{Query{Q: "GROSSE"}, ""}, // one letter is not two
		{Query{Q: "GROẞE"}, "a.read"},
		{Query{Q: "read", Agent: "a", Name: "read"}, "a.read"},
	} {
		var got []string
		for _, f := range Find(agents, c.q) {
			got = append(got, string(f.Agent)+"."+f.Tool.Name)
		}
		if strings.Join(got, " ") != c.want {
			t.Errorf("%+v: %q, want %q", c.q, got, c.want)
		}
	}
}

func TestARootIsAbsolute(t *testing.T) {
	for root, fits := range map[string]bool{"/work": true, "/": true, `C:\work`: true, "file:///work": true, "/a/../b": true,
		"work": false, "~": false, "/..": false, "/a\x00": false, "./": false, "https://x/y": false} {
		if err := CheckRoot(root); (err == nil) != fits {
			t.Errorf("%q: %v, want fits: %t", root, err, fits)
		}
	}
}
