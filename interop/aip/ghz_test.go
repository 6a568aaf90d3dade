//go:build interop

package aip

import (
	"context"
	"encoding/json"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/agora-relay/agora/client/aip"
	"github.com/agora-relay/agora/internal/await"
)

// counted counts how often each thing was done. The zero value is ready to use.
type counted struct {
	mu  sync.Mutex // guards the field below
	all map[string]int
}

func (c *counted) add(what string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.all == nil {
		c.all = map[string]int{}
	}
	c.all[what]++
}

// each reports whether so many different things were done, each so often.
func (c *counted) each(many, often int) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, n := range c.all {
		if n != often {
			return false
		}
	}
	return len(c.all) == many
}

// load is what ghz says of its calls.
type load struct {
	Count                  int
	StatusCodeDistribution map[string]int
	ErrorDistribution      map[string]int
}

// calls400 has ghz make 400 calls of a method of an edge, 40 at a time, with data that may name the number of the call,
// and wants all of them to be OK. file is the proto that it loads; where it is empty it asks the edge by reflection.
func calls400(t *testing.T, edge, method, data, file string) {
	t.Helper()
	argv := []string{"--insecure", "--call", gateway + "." + method, "-d", data, "-n", "400", "-c", "40", "-O", "json"}
	if file != "" {
		argv = append(argv, "--proto", file)
	}
	out, err := exec.CommandContext(await.Context(t), absolute(t, filepath.Join(installed, "go/ghz")), append(argv, edge)...).Output()
	var l load
	if err == nil {
		err = json.Unmarshal(out, &l)
	}
	if err != nil || l.Count != 400 || l.StatusCodeDistribution["OK"] != 400 || len(l.ErrorDistribution) > 0 {
		t.Errorf("%s at %s: %v, %+v", method, edge, err, l)
	}
}

func TestEachCallOfAToolByGhzIsDoneOnce(t *testing.T) {
	c := start(t)
	var did counted
	box, err := aip.NewToolbox(aip.Config{ID: "box"})
	if err == nil {
		err = box.AddTool(aip.Tool{Name: "count"}, func(_ context.Context, arguments json.RawMessage) (any, error) {
			did.add(string(arguments))
			return "counted", nil
		})
	}
	serves(t, box, err, c.GRPC[0])
	for k, edge := range c.GRPC {
		data := `{"sender_id":"ghz","receiver_id":"box","session_id":"s","tool_name":"count","arguments":"{\"at\":\"` + edge + `\",\"call\":{{.RequestNumber}}}"}`
		calls400(t, edge, "RouteToolCalling", data, []string{"", protoFile, ""}[k])
	}
	if !did.each(1200, 1) {
		t.Errorf("not each of 1200 calls was done once: %d different ones", len(did.all))
	}
}

func TestEachSessionByGhzIsHeldToItsEnd(t *testing.T) {
	c := start(t)
	var heard counted
	agent, err := aip.NewAgent(aip.Config{ID: "agent"})
	if err == nil {
		agent.Handle(func(_ context.Context, s *aip.Session) error {
			for m := range s.Messages() {
				heard.add(s.ID())
				if m.GetSessionStatus() == aip.StopQuest {
					break
				}
				if err := s.Reply(m.GetContent()...); err != nil {
					return err
				}
			}
			return nil
		})
	}
	serves(t, agent, err, c.GRPC[0])
	for _, edge := range c.GRPC[1:] {
		quest := func(status, content string) string {
			return `{"sender_id":"ghz","receiver_id":"agent","session_id":"` + edge + ` {{.RequestNumber}}","session_status":"` + status + `","content":[` + content + `]}`
		}
		all := []string{quest("START_QUEST", `{"text":"ü"}`), quest("HOLD_QUEST", `{"image":"AP+A"}`), quest("HOLD_QUEST", ""), quest("STOP_QUEST", "")}
		calls400(t, edge, "RouteAgentCalling", "["+strings.Join(all, ",")+"]", "")
	}
	if !heard.each(800, 4) {
		t.Errorf("not each of 800 sessions was heard whole: %d different ones", len(heard.all))
	}
}
