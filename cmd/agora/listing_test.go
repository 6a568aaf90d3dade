package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"
	"google.golang.org/protobuf/proto"

	"github.com/agora-relay/agora/internal/await"
	"github.com/agora-relay/agora/wire/aip"
)

// richFrame is limits.frame where many rich agents are. It is less than one of their cards.
const richFrame = 112 << 10

// rich is how many there are.
const rich = 100

// manySpaces is how many spaces there are.
const manySpaces = 1500

// richCard is what an agent says of itself that says much: in its names, too.
func richCard() string {
	var tools []map[string]any
	for i := range 95 {
		tools = append(tools, map[string]any{
			"name": fmt.Sprint(strings.Repeat("𝛂", 120), i), "description": strings.Repeat("d", 400+i), "schema": map[string]any{"description": strings.Repeat("s", 300)},
		})
	}
	b, _ := json.Marshal(map[string]any{"description": "knows much", "endpoint": "https://example.com/" + strings.Repeat("p", 1900), "tools": tools})
	return string(b)
}

// crowded is a cluster with many rich agents and many spaces, asked by clients that take no more than their libraries
// do by default; those of WebSocket no more than limits.frame.
type crowded struct {
	*dev
	t    *testing.T
	at   string // over HTTP
	aip  aip.GatewayServiceClient
	asks atomic.Int32
}

func startCrowded(t *testing.T) *crowded {
	c := &crowded{dev: startDev(t, "--edges", "1", "--limits.frame", fmt.Sprint(richFrame)), t: t}
	c.at, c.aip = httpOf(c.public[0]), gatewayAt(t, c.grpc[0])
	card := richCard()
	var all sync.WaitGroup
	for worker := range 4 {
		all.Go(func() {
			for i := worker; i < rich; i += 4 {
				r, err := http.NewRequestWithContext(t.Context(), http.MethodPut, fmt.Sprintf("%s/agents/rich-%03d", c.at, i), strings.NewReader(card))
				if err != nil {
					t.Error(err)
					return
				}
				r.Header.Set("Content-Type", "application/json")
				if resp, body := done(t, r); resp.StatusCode != http.StatusOK {
					t.Errorf("register: %d %s", resp.StatusCode, body)
				}
			}
		})
	}
	all.Wait()
	if t.Failed() {
		t.FailNow()
	}
	host := c.socket("host")
	for i := range manySpaces {
		host.say(fmt.Sprintf(`{"type":"space.create","space":"%s%04d","id":"c"}`, strings.Repeat("x", 100), i))
		host.hear("space.created")
	}
	return c
}

// socket returns a connection of an agent that takes no frame that is larger than one may be.
func (c *crowded) socket(id string) *agent {
	c.t.Helper()
	a := connect(c.t, c.public[0]+"?agent_id="+id)
	a.SetReadLimit(richFrame)
	a.hear("agent.registered")
	return a
}

// page is what a listing tells in one answer.
type page struct {
	bytes   int
	ids     []string
	next    string
	leftOut []string
}

// framed asks by a frame, in which AFTER stands for where the page begins. What is answered is no larger than a frame,
// as nothing else is read.
func (c *crowded) framed(ask, answer string) func(after string) page {
	a := c.socket("asks-" + fmt.Sprint(c.asks.Add(1)))
	return func(after string) page {
		c.t.Helper()
		quoted, _ := json.Marshal(after)
		a.say(strings.ReplaceAll(ask, "AFTER", string(quoted)))
		f := a.hear(answer)
		p := page{next: f.Next, leftOut: f.LeftOut}
		for _, one := range f.Agents {
			p.ids = append(p.ids, one.ID)
		}
		for _, one := range f.Spaces {
			p.ids = append(p.ids, one.ID)
		}
		return p
	}
}

// listed reads a page of JSON.
func listed(t *testing.T, b []byte, list string) page {
	t.Helper()
	var all map[string]json.RawMessage
	if err := json.Unmarshal(b, &all); err != nil {
		t.Fatalf("%v: %.200s", err, b)
	}
	p := page{bytes: len(b)}
	var entries []struct {
		ID        string
		Agent     string
		AgentName string `json:"agent_name"`
	}
	if err := json.Unmarshal(all[list], &entries); err != nil {
		t.Fatalf("%v: %.200s", err, b)
	}
	for _, e := range entries {
		p.ids = append(p.ids, e.ID+e.Agent+e.AgentName)
	}
	_ = json.Unmarshal(all["next"], &p.next)
	_ = json.Unmarshal(all["left_out"], &p.leftOut)
	return p
}

// over asks over HTTP.
func (c *crowded) over(method, path, body, list string) func(after string) page {
	return func(after string) page {
		c.t.Helper()
		r, err := http.NewRequestWithContext(c.t.Context(), method, c.at+strings.ReplaceAll(path, "AFTER", url.QueryEscape(after)), strings.NewReader(body))
		if err != nil {
			c.t.Fatal(err)
		}
		r.Header.Set("Content-Type", "application/json")
		resp, text := done(c.t, r)
		if resp.StatusCode != http.StatusOK {
			c.t.Fatalf("%s %s: %d %.200s", method, path, resp.StatusCode, text)
		}
		if list != "" {
			return listed(c.t, []byte(text), list)
		}
		p := listed(c.t, fmt.Appendf(nil, `{"all":%s}`, text), "all")
		if p.next, err = url.PathUnescape(resp.Header.Get("Agora-Next")); err != nil {
			c.t.Error(err)
		}
		return p
	}
}

// nodes asks a gateway as the protocol knows it.
func (c *crowded) nodes(string) page {
	c.t.Helper()
	var header metadata.MD
	r, err := c.aip.GetNodes(await.Context(c.t), &aip.GetNodesRequest{}, grpc.Header(&header))
	if err != nil {
		c.t.Fatalf("GetNodes: %v", err)
	}
	return page{bytes: proto.Size(r), ids: idsOf(r.GetPeers()), leftOut: aip.LeftOut(header)}
}

// allNodes asks a gateway for pages.
func (c *crowded) allNodes(string) page {
	c.t.Helper()
	all, err := aip.AllNodes(await.Context(c.t), c.aip, &aip.GetNodesRequest{}, 64<<20)
	if err != nil {
		c.t.Fatalf("GetNodes: %v", err)
	}
	for _, p := range all {
		if skills := p.GetAgentInfo().GetSkills(); strings.HasPrefix(aip.IDOf(p), "rich") && len(skills[0].GetCapability()) != 400 {
			c.t.Fatalf("%s is not whole: %v", aip.IDOf(p), skills[0])
		}
	}
	return page{ids: idsOf(all)}
}

// registers registers an agent, which learns of all.
func (c *crowded) registers(string) page {
	c.t.Helper()
	var header metadata.MD
	r, err := c.aip.RegisterAgent(await.Context(c.t), &aip.AgentInfo{AgentId: newcomer, Address: toolbox(c.t)}, grpc.Header(&header))
	if err != nil || !r.GetSuccess() {
		c.t.Fatalf("RegisterAgent = %v, %v", r.GetSuccess(), err)
	}
	if ids := idsOf(r.GetPeers()); !slices.Contains(ids, newcomer) || !slices.IsSorted(ids) {
		c.t.Errorf("%s is told of %q", newcomer, ids)
	}
	return page{bytes: proto.Size(r), ids: idsOf(r.GetPeers()), leftOut: aip.LeftOut(header)}
}

// newcomer is listed behind all others.
const newcomer = "zoe"

func idsOf(all []*aip.Peer) (ids []string) {
	for _, p := range all {
		ids = append(ids, aip.IDOf(p))
	}
	return ids
}

// lines asks a verb, which prints a line for each.
func (c *crowded) lines(verb ...string) func(string) page {
	return func(string) (p page) {
		c.t.Helper()
		status, out, said := command(c.t, append(verb, "--url", c.public[0], "--json")...)
		if status != 0 {
			c.t.Fatalf("agora %s: %d %s", verb, status, said)
		}
		for line := range strings.Lines(out) {
			p.ids = append(p.ids, listed(c.t, fmt.Appendf(nil, `{"all":[%s]}`, line), "all").ids...)
		}
		return p
	}
}

// kept returns those of ids that begin so, each once.
func kept(ids []string, prefix string) (all []string) {
	for _, id := range ids {
		if strings.HasPrefix(id, prefix) {
			all = append(all, id)
		}
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// A listing grows with the cluster, and no answer may: its clients would not take it. A door that lists something new
// has its row here.
func TestNoAnswerGrowsBeyondWhatClientsTake(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("left to make test")
	}
	c := startCrowded(t)
	const some, http, grpc = -1, 4<<20 + 256<<10, 4 << 20
	for door, of := range map[string]struct {
		ask   func(after string) page
		most  int    // bytes of an answer; 0 where larger ones are not read
		what  string // ids begin so
		count int    // how many there are in all; some where only one answer is to be had, with less of each
		pages int    // at least
	}{
		"list":             {c.framed(`{"type":"list","id":"1","after":AFTER}`, "agents"), 0, "rich", rich, 2},
		"agents.find":      {c.framed(`{"type":"agents.find","goal":"knows much","limit":256}`, "agents.found"), 0, "rich", some, 1},
		"agents.find of 1": {c.framed(`{"type":"agents.find","to":"rich-007"}`, "agents.found"), 0, "rich", some, 1},
		"card.get":         {c.framed(`{"type":"card.get","id":"1","to":"rich-007"}`, "error"), 0, "", 0, 1},
		"space.list":       {c.framed(`{"type":"space.list","id":"1","after":AFTER}`, "space.list"), 0, "xxx", manySpaces, 2},
		"GET /agents":      {c.over("GET", "/agents?limit=10000&after=AFTER", "", "agents"), http, "rich", rich, 3},
		"/agents/find":     {c.over("POST", "/agents/find", `{"goal":"knows much","limit":256}`, "agents"), http, "rich", some, 1},
		"/a2a/tools":       {c.over("GET", "/a2a/tools?after=AFTER", "", "tools"), http, "rich", rich, 3},
		"/peers":           {c.over("GET", "/peers?after=AFTER", "", ""), http, "rich", rich, 2},
		"GetNodes":         {c.nodes, grpc, "rich", some, 1},
		"GetNodes, paged":  {c.allNodes, 0, "rich", rich, 1},
		"RegisterAgent":    {c.registers, grpc, "rich", some, 1},
		"agora agents":     {c.lines("agents"), 0, "rich", rich, 1},
		"agora spaces":     {c.lines("spaces"), 0, "xxx", manySpaces, 1},
		"agora tools":      {c.lines("tools"), 0, "rich", rich, 1},
	} {
		var ids, leftOut []string
		pages := 0
		for after, more := "", true; more; pages++ {
			p := of.ask(after)
			if of.most > 0 && p.bytes > of.most {
				t.Errorf("%s: an answer has %d bytes, more than %d", door, p.bytes, of.most)
			}
			ids, leftOut = append(ids, p.ids...), append(leftOut, p.leftOut...)
			after, more = p.next, p.next != ""
		}
		t.Log(door, pages, "pages,", len(ids), "entries, left out:", leftOut)
		ids = kept(ids, of.what)
		switch {
		case of.count == some && (len(ids) == 0 || leftOut == nil):
			t.Errorf("%s: tells of %d, and that it leaves out %q", door, len(ids), leftOut)
		case of.count != some && (len(ids) != of.count || leftOut != nil):
			t.Errorf("%s: tells of %d, want %d; it leaves out %q", door, len(ids), of.count, leftOut)
		case pages < of.pages:
			t.Errorf("%s: %d pages are not enough to be tested", door, pages)
		}
	}
	if ids := c.over("GET", "/agents?after=AFTER", "", "agents")("y").ids; !slices.Equal(ids, []string{newcomer}) {
		t.Errorf("who was answered is not registered: %q", ids)
	}
}
