package member

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/agora-relay/agora"
	"github.com/agora-relay/agora/client"
	"github.com/agora-relay/agora/mcp/stdio"
)

func newMember(t *testing.T) *Member {
	t.Helper()
	m, err := New(Config{Command: []string{"x"}, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// nested returns a schema of so many levels.
func nested(levels int) any {
	var s any = map[string]any{}
	for range levels - 1 {
		s = map[string]any{"items": s}
	}
	return s
}

func TestNoToolKeepsAnAgentOutOfTheDirectory(t *testing.T) {
	t.Parallel()
	tools := []*mcp.Tool{
		{Name: "deep", InputSchema: nested(agora.MaxSchemaDepth + 1)}, {Name: "flat", InputSchema: nested(agora.MaxSchemaDepth)},
		{Name: "text", InputSchema: "no schema"}, {Name: strings.Repeat("é", 129)}, {Name: strings.Repeat("é", 128)}, {Name: ""},
		{Name: "flat"}, {Name: "wordy", Description: strings.Repeat("é", 5000)}, {Name: "broken", Description: "a\xff"},
	}
	for n := range 300 {
		tools = append(tools, &mcp.Tool{Name: fmt.Sprint(n)})
	}
	all := newMember(t).skills(tools)
	if err := (&agora.Agent{ID: "a", Tools: all}).Check(1 << 20); err != nil || len(all) != agora.MaxSkills {
		t.Fatalf("%d tools are told, which the directory finds %v", len(all), err)
	}
	var names []string
	for _, s := range all[:6] {
		names = append(names, fmt.Sprintf("%.4s %v", s.Name, s.Schema != nil))
	}
	if got, want := strings.Join(names, ", "), "deep false, flat true, text false, éééé false, word false, brok false"; got != want {
		t.Errorf("the first ones are %s, want %s", got, want)
	}
}

func TestACardIsMadeAsSmallAsEdgesTakeIt(t *testing.T) {
	t.Parallel()
	card := client.Card{Name: "a", Description: "b"}
	for n := range 20 {
		schema := []byte(`{"description":"` + strings.Repeat("x", 1000*n) + `"}`)
		card.Tools = append(card.Tools, agora.Skill{Name: fmt.Sprint("tool", n), Description: strings.Repeat("d", 100), Schema: schema})
	}
	m := newMember(t)
	told := 0
	err := m.fitting(card, func(fit client.Card) error {
		told++
		if size(fit) > 2000 {
			return agora.Errorf(agora.InvalidRequest, "card is larger than 2000 bytes")
		}
		return nil
	})
	if err != nil || len(m.names()) != 20 || told < 2 {
		t.Errorf("after %d tries %d tools are told, %v", told, len(m.names()), err)
	}
	if len(card.Tools[19].Schema) < 19000 {
		t.Error("the card itself was changed")
	}
	if err := m.fitting(card, func(client.Card) error { return agora.Errorf(agora.Forbidden, "no") }); agora.AsError(err).Code != agora.Forbidden {
		t.Errorf("another refusal is %v", err)
	}
}

func TestALineThatIsTooLongIsPassedOverAndNamesItsCall(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("y", 9000)
	in := "one\r\n" + `{"jsonrpc":"2.0","id":7,"result":"` + long + `"}` + "\n" + `{"result":"` + long + `","jsonrpc":"2.0","id":8}` + "\n" + `{"id":` + long + "\nlast\nhalf"
	l := stdio.NewLines(strings.NewReader(in), 8000)
	var got []string
	for {
		line, tail, long, err := l.Next()
		if err != nil {
			if !errors.Is(err, io.EOF) {
				t.Error(err)
			}
			break
		}
		text := string(line)
		if long {
			text = "long"
			if len(line)+len(tail) > 1024 {
				t.Errorf("%d bytes of a long line are kept", len(line)+len(tail))
			}
			if r, ok := answerOf(line, tail).(*jsonrpc.Response); ok {
				text += fmt.Sprint(" ", r.ID.Raw())
			}
		}
		got = append(got, text)
	}
	if text := strings.Join(got, ", "); text != "one, long 7, long 8, long, last" {
		t.Errorf("lines are %s", text)
	}
}

func TestAnAgentIdIsMadeOfAServersName(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]string{
		"files": "files", " a\x00b\n ": "ab", strings.Repeat("é", 200): strings.Repeat("é", agora.MaxIDLength), "": "", "agora": "", "\x01": "",
	} {
		got, err := idOf(&mcp.InitializeResult{ServerInfo: &mcp.Implementation{Name: name}})
		if got != want || (err != nil) != (want == "") {
			t.Errorf("of %q the id is %q, %v, want %q", name, got, err, want)
		}
	}
	if _, err := idOf(&mcp.InitializeResult{}); err == nil {
		t.Error("a server without a name has an id")
	}
}
