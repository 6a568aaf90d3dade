package ws_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/agora-relay/agora/edge"
	"github.com/agora-relay/agora/edge/admission"
	"github.com/agora-relay/agora/internal/agoratest"
)

// What an edge has to tell grows with the cluster, and its frames don't.
func TestNoListIsALargerFrameThanOneMayBe(t *testing.T) {
	t.Parallel()
	const most, agents = 4 << 10, 40
	c := agoratest.Start(t, agoratest.Options{Edges: 1, Node: edge.Config{Limits: admission.Limits{Frame: most}}})
	name := func(i int) string { return fmt.Sprint(strings.Repeat("x", 100), 10+i) }
	var last *agoratest.Client
	for i := range agents {
		last = agoratest.Connect(t, agoratest.Direct{}, c.URL(0), "agent_id="+name(i), nil)
		last.Send(fmt.Sprintf(`{"type":"space.join","space":"%s"}`, name(i)), `{"type":"space.join","id":"j","space":"all"}`)
		joined := last.Await(`{"type":"space.joined","id":"j"}`)
		if len(joined) > most {
			t.Errorf("member %d is answered by a frame of %d bytes", i, len(joined))
		}
		if !strings.Contains(joined.Raw("members"), agoratest.Quote(name(i))) {
			t.Errorf("the joiner is none of the members: %s", joined)
		}
	}
	last.Send(`{"type":"space.join","id":"again","space":"all"}`)
	last.Await(`{"type":"space.joined","id":"again","left_out":["members"]}`)
	for ask, list := range map[string]string{"list": "agents", "space.list": "spaces"} {
		there, pages := map[string]bool{}, 0
		for next := ""; pages == 0 || next != ""; pages++ {
			after := ""
			if next != "" {
				after = `,"after":` + agoratest.Quote(next)
			}
			last.Send(fmt.Sprintf(`{"type":%q,"id":"p%d"%s}`, ask, pages, after))
			f := last.Await(fmt.Sprintf(`{"id":"p%d"}`, pages))
			if len(f) > most {
				t.Errorf("%s is answered by a frame of %d bytes", ask, len(f))
			}
			var all []struct{ ID string }
			if err := json.Unmarshal([]byte(f.Raw(list)), &all); err != nil {
				t.Fatalf("%s: %v", f, err)
			}
			for _, one := range all {
				there[one.ID] = true
			}
			next = f.Text("next")
		}
		for i := range agents {
			if !there[name(i)] {
				t.Errorf("%s, in %d pages, does not tell of %s", ask, pages, name(i))
			}
		}
		if pages < 2 {
			t.Errorf("%s is all on one page", ask)
		}
	}
	last.Send(`{"type":"agents.find","id":"f","goal":"` + name(0) + `","limit":256}`)
	last.Await(`{"type":"agents.found","id":"f"}`)
}
