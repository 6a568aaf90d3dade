package agenttools

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/agora-relay/agora"
	"github.com/agora-relay/agora/client"
	"github.com/agora-relay/agora/internal/await"
)

const golden = "testdata/tools.json"

func TestTheTwoToolsAreWhatHostsKnow(t *testing.T) {
	t.Parallel()
	c := New(nil, Config{})
	b, err := json.Marshal([]*mcp.Tool{c.callTool().tool, c.findTool().tool})
	if err != nil {
		t.Fatal(err)
	}
	var page bytes.Buffer
	if err := json.Indent(&page, b, "", "  "); err != nil {
		t.Fatal(err)
	}
	page.WriteByte('\n')
	if os.Getenv("AGORA_UPDATE_DOCS") != "" {
		if err := os.WriteFile(golden, page.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if want, err := os.ReadFile(golden); err != nil || !bytes.Equal(want, page.Bytes()) {
		t.Errorf("%s is not what hosts are told (%v); see that it may be, and write it anew with AGORA_UPDATE_DOCS=1. It should be\n%s", golden, err, page.Bytes())
	}
	for _, x := range []*mcp.Tool{c.callTool().tool, c.findTool().tool} {
		if !wellFormed(x.InputSchema.(json.RawMessage)) || !wellFormed(x.OutputSchema.(json.RawMessage)) {
			t.Errorf("%s has a malformed schema", x.Name)
		}
	}
}

// many returns so many tools.
func many(n int) (all []agora.Skill) {
	for i := range n {
		all = append(all, agora.Skill{Name: fmt.Sprintf("tool_%02d", i), Description: "Does nothing in particular."})
	}
	return all
}

func TestBeyondFortyToolsTwoFindAndCallThem(t *testing.T) {
	t.Parallel()
	for _, generation := range []string{generation1, generation2} {
		t.Run(generation, func(t *testing.T) {
			t.Parallel()
			cluster := startCluster(t)
			me := dial(t, cluster.URL(0), "me")
			h := start(t, me, Config{Refresh: often}, generation)
			box := echo(t, cluster.URL(0), "box", many(MaxTools)...)
			await.True(t, "all tools", func() bool { return strings.Count(h.names(), " ") == MaxTools-1 })
			echo(t, cluster.URL(0), "bob", agora.Skill{Name: "translate", Description: "Translates contracts.", Schema: json.RawMessage(`{"type":"string"}`)})
			h.sees(callName + " " + findName)
			got := h.call(findName, map[string]any{"query": "translate a contract"})
			if !strings.HasPrefix(got, `{"tools":[{"agent":"bob","tool":"translate","description":"Translates contracts.\n\nTool \"translate\" of the agent \"bob\".","schema":{"type":"object","properties":{"arguments":{"type":"string"}}`) {
				t.Errorf("the search finds %s", got)
			}
			got = h.call(callName, json.RawMessage(`{"agent":"bob","tool":"translate","arguments":{"arguments":"hi"}}`))
			if got != `translate "hi" | structured {"result":"translate \"hi\""}` {
				t.Errorf("the call is answered with %s", got)
			}
			changes := h.changes.Load()
			box.Close()
			h.sees("bob__translate")
			await.True(t, "the announcement", func() bool { return h.changes.Load() > changes })
		})
	}
}

func TestTheTwoToolsSayWhatIsWrongWithACall(t *testing.T) {
	t.Parallel()
	cluster := startCluster(t)
	me := dial(t, cluster.URL(0), "me")
	echo(t, cluster.URL(0), "box", many(MaxTools+1)...)
	echo(t, cluster.URL(0), "open")
	listable(t, me, "box", MaxTools+1)
	listable(t, me, "open", 0)
	h := start(t, me, Config{From: "box,open"}, generation2)
	for _, c := range []struct{ tool, arguments, want string }{
		{findName, `{}`, `error | agora_find_tool takes {"query": TEXT`},
		{findName, `{"query":"a","more":1}`, `error | agora_find_tool takes {"query": TEXT`},
		{findName, `{"query":"a","limit":21}`, `error | The limit must be 1 to 20.`},
		{findName, `{"query":"` + strings.Repeat("a", maxQuery+1) + `"}`, `error | The query is longer than 256 characters.`},
		{findName, `{"query":"zebra"}`, `{"tools":[],"more":0,"note":"No tool of another agent fits.`},
		{callName, `{"agent":"box"}`, `error | agora_call_tool takes {"agent": ID`},
		{callName, `{"agent":"nobody","tool":"a"}`, `error | The agent "nobody" is not there any more.`},
		{callName, `{"agent":"me","tool":"a"}`, `error | The agent "me" is not there any more.`},
		{callName, `{"agent":"box","tool":"a"}`, `error | The agent "box" has no tool "a". It has 41: "tool_00", "tool_01"`},
		{callName, `{"agent":"open","tool":"any"}`, `any {} | structured {"result":"any {}"}`},
	} {
		if got := h.call(c.tool, json.RawMessage(c.arguments)); !strings.HasPrefix(got, c.want) {
			t.Errorf("%s %.100s is answered with %s, want %s", c.tool, c.arguments, got, c.want)
		}
	}
}

func TestASearchIsBounded(t *testing.T) {
	t.Parallel()
	var all []tool
	for i := range 30 {
		all = append(all, tool{agent: "a", name: fmt.Sprint(i), schema: json.RawMessage(`{"type":"object","description":"` + strings.Repeat("x", 1000) + `"}`)})
	}
	f := listed(all, maxFound)
	if n := len(encoded(f)); n > maxFoundText || len(f.Tools) < 6 || f.More != 30-len(f.Tools) || !strings.Contains(f.Note, "Name more precisely") {
		t.Errorf("%d tools in %d bytes, %d more: %s", len(f.Tools), n, f.More, f.Note)
	}
	if f = listed(all, 2); len(f.Tools) != 2 || f.More != 28 || !strings.Contains(f.Note, "raise limit") {
		t.Errorf("%d tools, %d more: %s", len(f.Tools), f.More, f.Note)
	}
	all[0].schema = json.RawMessage(`{"type":"object","description":"` + strings.Repeat("x", maxFoundText) + `"}`)
	f = listed(all[:1], 1)
	if len(encoded(f)) > maxFoundText || len(f.Tools) != 1 || string(f.Tools[0].Schema) != open || !strings.Contains(f.Tools[0].Description, "too large to be shown") {
		t.Errorf("a tool with a large schema is found as %s", encoded(f))
	}
}

func TestASearchRanksNamesBeforeWords(t *testing.T) {
	t.Parallel()
	all := []tool{
		{agent: "x", name: "misc", description: "Reads a file."},
		{agent: "files", name: "readFile"},
		{agent: "files", name: "read_file_list"},
		{agent: "y", name: "unrelated"},
		{agent: "z", name: "run", about: "reader of things"},
	}
	var got []string
	for _, x := range rank(all, "read file", map[string]int{"files": 0}) {
		got = append(got, x.name)
	}
	if want := "readFile read_file_list misc run"; strings.Join(got, " ") != want {
		t.Errorf("the ranking is %v, want %s", got, want)
	}
	if best := rank(all, "MISC", nil); len(best) != 1 || best[0].name != "misc" {
		t.Errorf("a search by name finds %v", best)
	}
}

func TestASearchFindsToolsOfAgentsThatAreNotKnownYet(t *testing.T) {
	t.Parallel()
	cluster := startCluster(t)
	me := dial(t, cluster.URL(0), "me")
	h := prepare(t, me, Config{From: "b*"})
	for _, id := range []string{"bob", "carol"} {
		dial(t, cluster.URL(0), id, agora.Skill{Name: "translate"})
		listable(t, me, id, 1)
	}
	all := h.catalog.search(await.Context(t), "translate")
	if len(all) != 1 || all[0].agent != "bob" || string(all[0].schema) != open {
		t.Errorf("the search finds %+v", all)
	}
}

func TestToolsWhoseHashesAreEqualAreLeftOut(t *testing.T) {
	t.Parallel()
	c := New(&client.Client{}, Config{})
	for _, id := range []string{"a", "b"} {
		c.known[id] = &card{tools: []tool{{agent: id, mcpName: "same"}, {agent: id, mcpName: id}}}
	}
	all := c.collect([]listing{{id: "a"}, {id: "b"}, {id: "gone"}})
	if len(all) != 2 || all[0].mcpName != "a" || all[1].mcpName != "b" {
		t.Errorf("%v are offered", all)
	}
}
