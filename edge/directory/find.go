package directory

import (
	"cmp"
	"context"
	"hash/fnv"
	"math"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/agora-relay/agora"
)

// Bounds of a query.
const (
	DefaultFound = 20   // agents that are found where a query does not say how many
	MaxFound     = 256  // and at most
	MaxGoal      = 1024 // runes of a skill or goal
	maxWords     = 16   // of a goal that count: the first
)

// Query says what is looked for. Exactly one of Skill and Goal is set.
type Query struct {
	Skill string // name of a skill or tool; where nobody has one of that name, its words count
	Goal  string // what is to be done, in words
	Limit int    // at most MaxFound; DefaultFound if 0
}

// text returns what is looked for, or INVALID_REQUEST.
func (q *Query) text() (string, error) {
	text := cmp.Or(q.Skill, q.Goal)
	switch {
	case (q.Skill == "") == (q.Goal == ""):
		return "", agora.Errorf(agora.InvalidRequest, "one of skill and goal is needed")
	case utf8.RuneCountInString(text) > MaxGoal:
		return "", agora.Errorf(agora.InvalidRequest, "skill or goal is longer than %d characters", MaxGoal)
	case q.Limit < 0 || q.Limit > MaxFound:
		return "", agora.Errorf(agora.InvalidRequest, "limit must be 1 to %d", MaxFound)
	}
	return text, nil
}

// Find returns the agents that fit best, the best first: those that have a skill of that name, those that have such a
// tool, then those of whose name, description, skills and tools the words speak, rare words before common ones.
// INVALID_REQUEST.
func (d *Directory) Find(ctx context.Context, tenant string, q Query) ([]agora.Agent, error) {
	text, err := q.text()
	if err != nil {
		return nil, err
	}
	r, err := d.ask(ctx, tenant)
	if err != nil {
		return nil, err
	}
	words := wordsOf(text)
	if len(words) > maxWords {
		words = words[:maxWords]
	}
	found := make([]agora.Agent, 0, min(cmp.Or(q.Limit, DefaultFound), MaxFound))
	for _, e := range r.best(text, words, cap(found), q.Skill != "") {
		if a := e.Agent(); speaks(&a, text, words) { // hashes may be the same of words that are not
			found = append(found, a)
		}
	}
	return found, nil
}

// term is a word of an agent, or an exact name, as a hash, and in the last bits where it stands.
type term uint32

// Where a word stands; what says more about an agent is greater.
const (
	inDescription term = iota + 1
	inSkillText
	inName
	inSkill
	exact

	places = 7 // mask
)

// weights are what a word counts, by where it stands.
var weights = [places + 1]float64{inDescription: 1, inSkillText: 1.2, inName: 1.5, inSkill: 2}

// What an exact name counts; more than all words together do.
const (
	exactSkill = 1e6
	exactTool  = 1e5
)

// Marks of exact names: no word holds them.
const (
	skillMark   = "s\x00"
	toolMark    = "t\x00"
	domainMark  = "o\x00"
	dialectMark = "d\x00"
)

func hash(mark, s string) term {
	h := fnv.New32a()
	_, _ = h.Write([]byte(mark)) // never fails
	_, _ = h.Write([]byte(s))
	return term(h.Sum32()) &^ places
}

// termsOf returns what an agent can be found by, each once.
func termsOf(a agora.Agent) []term {
	var all []term
	add := func(place term, text string) {
		for _, w := range wordsOf(text) {
			all = append(all, hash("", w)|place)
		}
	}
	add(inName, string(a.ID))
	add(inName, a.Name)
	add(inDescription, a.Description)
	add(inDescription, a.Domain)
	for mark, skills := range map[string][]agora.Skill{skillMark: a.Skills, toolMark: a.Tools} {
		for _, s := range skills {
			all = append(all, hash(mark, fold(s.Name))|exact)
			add(inSkill, s.Name)
			add(inSkillText, s.Description)
		}
	}
	if a.Domain != "" {
		all = append(all, hash(domainMark, a.Domain)|exact)
	}
	all = append(all, hash(dialectMark, a.DialectName())|exact)
	slices.Sort(all) // by hash, then place
	// Of a word that stands in several places the one counts that says most: the last.
	kept := all[:0]
	for i, t := range all {
		if i+1 < len(all) && all[i+1]&^places == t&^places {
			continue
		}
		kept = append(kept, t)
	}
	return kept
}

// fold is a name as it is compared.
func fold(s string) string { return strings.ToLower(strings.TrimSpace(s)) }

// wordsOf returns the words of a text, in lower case, each as often as it stands there.
func wordsOf(text string) []string {
	return strings.FieldsFunc(strings.ToLower(text), func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) })
}

// hit is an agent of which something speaks.
type hit struct {
	*entry
	score float64
}

// before reports whether one hit goes before another: the better one, and of equals the one with the smaller id.
func (h hit) before(other hit) bool {
	return h.score > other.score || h.score == other.score && h.ID < other.ID
}

// best returns the entries that fit best. With alone, where any have a skill or tool of that very name, those alone.
func (r *replica) best(text string, words []string, limit int, alone bool) []*entry {
	r.mu.RLock()
	defer r.mu.RUnlock()
	x, name := &r.index, fold(text)
	scores := make([]float64, len(x.slots))
	named := x.count(scores, hash(skillMark, name), func(term) float64 { return exactSkill })
	named += x.count(scores, hash(toolMark, name), func(term) float64 { return exactTool })
	least := 0.0
	if alone && named > 0 {
		least = exactTool
	}
	for _, w := range words {
		h := hash("", w)
		rare := math.Log1p(float64(len(r.agents)) / float64(max(1, x.often(h))))
		x.count(scores, h, func(place term) float64 { return weights[place] * rare })
	}
	var top []hit
	for slot, score := range scores {
		if score > 0 && score >= least {
			top = insert(top, hit{x.slots[slot], score}, limit)
		}
	}
	found := make([]*entry, len(top))
	for i, h := range top {
		found[i] = h.entry
	}
	return found
}

// insert puts a hit among the best so many, the best first.
func insert(top []hit, h hit, limit int) []hit {
	if len(top) == limit {
		if !h.before(top[limit-1]) {
			return top
		}
		top = top[:limit-1]
	}
	i, _ := slices.BinarySearchFunc(top, h, func(a, b hit) int {
		if a.before(b) {
			return -1
		}
		return 1
	})
	return slices.Insert(top, i, h)
}

// speaks reports whether an agent has a skill or tool of a name, or one of words.
func speaks(a *agora.Agent, name string, words []string) bool {
	texts := []string{string(a.ID), a.Name, a.Description, a.Domain}
	for _, skills := range [...][]agora.Skill{a.Skills, a.Tools} {
		for _, s := range skills {
			if fold(s.Name) == fold(name) {
				return true
			}
			texts = append(texts, s.Name, s.Description)
		}
	}
	return slices.ContainsFunc(texts, func(text string) bool {
		return slices.ContainsFunc(wordsOf(text), func(w string) bool { return slices.Contains(words, w) })
	})
}

// matching returns the entries that a filter may take; only hashes are compared.
func (r *replica) matching(f Filter) []*entry {
	r.mu.RLock()
	defer r.mu.RUnlock()
	x, need := &r.index, 0
	scores := make([]float64, len(x.slots))
	one := func(term) float64 { return 1 }
	if f.Skill != "" {
		need++
		name := fold(f.Skill)
		x.count(scores, hash(skillMark, name), one)
		x.count(scores, hash(toolMark, name), one)
		for i := range scores {
			scores[i] = min(scores[i], 1)
		}
	}
	for mark, value := range map[string]string{domainMark: f.Domain, dialectMark: f.Dialect} {
		if value != "" {
			need++
			x.count(scores, hash(mark, value), one)
		}
	}
	found := make([]*entry, 0, len(r.agents))
	for slot, e := range x.slots {
		if e != nil && scores[slot] >= float64(need) && e.ID > f.After && e.ID >= f.From {
			found = append(found, e)
		}
	}
	return found
}
