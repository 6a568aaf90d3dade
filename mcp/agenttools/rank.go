package agenttools

import (
	"cmp"
	"slices"
	"strings"
	"unicode"
)

// What a word of a query counts, by where it stands.
const (
	named       = 1000 // the query is the tool's name
	inName      = 4
	inAgent     = 2 // the agent's id
	inText      = 1.5
	inAbout     = 1
	notAWord    = 0.5 // what the word counts that is only the beginning of one
	minBeginner = 4   // bytes that such a beginning has at least
)

// rank returns the tools of which a query speaks, the best first; of equals those of the agents that the cluster has
// found first, by their places there, and then by name.
func rank(all []tool, query string, places map[string]int) []tool {
	type hit struct {
		tool
		score float64
		place int
	}
	words := wordsOf(query)
	var hits []hit
	for _, x := range all {
		if s := score(&x, query, words); s > 0 {
			place, found := places[x.agent]
			if !found {
				place = len(places)
			}
			hits = append(hits, hit{x, s, place})
		}
	}
	slices.SortFunc(hits, func(a, b hit) int {
		return cmp.Or(cmp.Compare(b.score, a.score), cmp.Compare(a.place, b.place), strings.Compare(a.mcpName, b.mcpName))
	})
	best := make([]tool, len(hits))
	for i, h := range hits {
		best[i] = h.tool
	}
	return best
}

// score returns how much a query speaks of a tool; 0 for not at all.
func score(x *tool, query string, words []string) (sum float64) {
	if strings.EqualFold(x.name, query) || x.mcpName == query {
		sum = named
	}
	places := [...]struct {
		words  []string
		weight float64
	}{{wordsOf(x.name), inName}, {wordsOf(x.agent), inAgent}, {wordsOf(x.description), inText}, {wordsOf(x.about), inAbout}}
	for _, w := range words {
		best := 0.0
		for _, p := range places {
			best = max(best, p.weight*share(w, p.words))
		}
		sum += best
	}
	return sum
}

// share returns 1 where a word is among others, less where it begins one of them or one of them begins it, else 0.
func share(word string, among []string) (most float64) {
	for _, w := range among {
		switch {
		case w == word:
			return 1
		case min(len(w), len(word)) >= minBeginner && (strings.HasPrefix(w, word) || strings.HasPrefix(word, w)):
			most = notAWord
		}
	}
	return most
}

// wordsOf returns the words of a text, in lower case. A capital behind a small letter begins a word, as in readFile.
func wordsOf(s string) []string {
	var b strings.Builder
	small := false
	for _, r := range s {
		if small && unicode.IsUpper(r) {
			b.WriteByte(' ')
		}
		small = unicode.IsLower(r)
		b.WriteRune(unicode.ToLower(r))
	}
	return strings.FieldsFunc(b.String(), func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) })
}
