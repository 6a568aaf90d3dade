package directory_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/agora-relay/agora"
	"github.com/agora-relay/agora/edge/directory"
	"github.com/agora-relay/agora/internal/servers"
)

func TestWhoFitsBestIsFoundFirst(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	d := w.open(directory.Config{Compare: time.Hour})
	for _, a := range []agora.Agent{
		{ID: "words", Description: "Can translate a text to French, and to others."},
		{ID: "tool", Tools: []agora.Skill{{Name: "translate"}}},
		{ID: "skill", Skills: []agora.Skill{{Name: "Translate", Description: "to French"}}},
		{ID: "namesake translate"},
		{ID: "skilled", Skills: []agora.Skill{{Name: "speech-to-text"}}},
		{ID: "cook", Name: "The Cook", Description: "Cooks a meal to order, to the point."},
		{ID: "日本語", Description: "翻訳 します"},
	} {
		w.register(a, false)
	}
	for query, want := range map[directory.Query]string{
		{Skill: "translate"}:                         "skill tool",
		{Skill: " TRANSLATE "}:                       "skill tool",
		{Skill: "speech to text"}:                    "skilled words skill cook",
		{Skill: "nothing"}:                           "",
		{Goal: "translate"}:                          "skill tool namesake translate words",
		{Goal: "I would like a meal"}:                "cook words",
		{Goal: "翻訳"}:                                 "日本語",
		{Goal: "translate", Limit: 1}:                "skill",
		{Goal: strings.Repeat("a ", 17) + "meal"}:    "cook words",
		{Goal: "!?"}:                                 "",
		{Goal: "Translate this to French", Limit: 2}: "skill words",
	} {
		found, err := d.Find(t.Context(), w.tenant, query)
		w.must(err)
		ids := []string{}
		for _, a := range found {
			ids = append(ids, string(a.ID))
		}
		if got := strings.Join(ids, " "); got != want {
			t.Errorf("Find(%+v) = %s, want %s", query, got, want)
		}
	}
	for _, q := range []directory.Query{
		{}, {Skill: "a", Goal: "b"}, {Goal: strings.Repeat("x", 1025)}, {Goal: "x", Limit: 257}, {Goal: "x", Limit: -1},
	} {
		if _, err := d.Find(t.Context(), w.tenant, q); agora.AsError(err) == nil || agora.AsError(err).Code != agora.InvalidRequest {
			t.Errorf("Find(%+v) = %v, want INVALID_REQUEST", q, err)
		}
	}
}

// crowd is ten thousand agents, each of which says a few sentences of itself.
func crowd(t testing.TB) (*world, *directory.Directory) {
	w := worldAt(t, "redis://"+servers.Redis(t).Addr())
	d := w.open(directory.Config{Compare: time.Hour})
	subjects := strings.Fields("law music weather travel maths history chess biology traffic finance poetry cooking")
	for i := range 10_000 {
		subject := subjects[i%len(subjects)]
		a := agora.Agent{
			ID: agora.AgentID(fmt.Sprintf("agent-%05d", i)), Name: fmt.Sprintf("Expert %d for %s", i, subject), Domain: subject, Version: "1.4.0",
			Description: fmt.Sprintf("Answers questions about %s for people in a hurry, with sources; knows area %d best.", subject, i%977),
			Type:        "process", Capabilities: []string{"text", "code_execution"}, RegisteredAt: time.Now(),
			Skills: []agora.Skill{
				{Name: fmt.Sprintf("explain-%s-%d", subject, i%313), Description: "Explains what was asked in a few words"},
				{Name: fmt.Sprintf("summarize-%d", i%101), Description: "Makes a summary of a long text about " + subject},
				{Name: "translate", Description: "Translates between two languages"},
			},
		}
		w.register(a, false)
	}
	return w, d
}

func BenchmarkFind(b *testing.B) {
	w, d := crowd(b)
	for name, q := range map[string]directory.Query{
		"skill of all":  {Skill: "translate"},
		"skill of few":  {Skill: "explain-law-0"},
		"goal":          {Goal: "explain the weather of tomorrow to me in a few words, please, with sources"},
		"goal of rarer": {Goal: "somebody who knows area 412"},
	} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				if found, err := d.Find(b.Context(), w.tenant, q); err != nil || len(found) == 0 {
					b.Fatal(found, err)
				}
			}
		})
	}
}
