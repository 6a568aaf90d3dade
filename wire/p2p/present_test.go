package p2p_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/agora-relay/agora"
	"github.com/agora-relay/agora/wire/p2p"
)

func TestTheClusterHasNoLargerCardThanIsRead(t *testing.T) {
	t.Parallel()
	for descriptions, want := range map[int][]string{10: nil, 4096: {"descriptions"}} {
		c := p2p.ClusterCard{Name: "c", Agents: 3}
		for a := range 3 {
			agent := agora.Agent{ID: agora.AgentID(fmt.Sprint("a", a))}
			for i := range 100 {
				agent.Skills = append(agent.Skills, agora.Skill{Name: fmt.Sprint("s", i), Description: strings.Repeat("é\x01", descriptions/2)})
			}
			c.Able = append(c.Able, agent)
		}
		b := c.Append([]byte("before"))[len("before"):]
		var card struct {
			Skills []struct{ Name, Description string }
			Left   []string `json:"left_out"`
		}
		if err := json.Unmarshal(b, &card); err != nil {
			t.Fatal(err)
		}
		if len(b) > p2p.MaxCard || len(card.Skills) != p2p.MaxClusterSkills || !slices.Equal(card.Left, want) {
			t.Errorf("%d bytes, %d skills, left out %q, want %q", len(b), len(card.Skills), card.Left, want)
		}
		if _, err := p2p.ReadCard(b, 0); err != nil {
			t.Error(err)
		}
		if card.Skills[0].Description == "" || (card.Skills[255].Description == "") != (want != nil) {
			t.Errorf("descriptions of %d and %d bytes", len(card.Skills[0].Description), len(card.Skills[255].Description))
		}
	}
}
