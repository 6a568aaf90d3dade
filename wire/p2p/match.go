package p2p

import "strings"

// has reports whether a path as it is asked for is one of a card, or has its form.
func (p *path) has(asked *path) bool {
	if len(p.segments) != len(asked.segments) || len(p.query) != len(asked.query) {
		return false
	}
	for i, s := range p.segments {
		if !s.takes(asked.segments[i], false) {
			return false
		}
	}
	for i, q := range p.query {
		a := asked.query[i]
		if q.key.text() != a.key.text() || q.equal != a.equal || !q.value.takes(a.value, true) {
			return false
		}
	}
	return true
}

// takes reports whether what is asked for is the pattern itself, or a text of its form.
func (p pattern) takes(asked pattern, empty bool) bool {
	if p.same(asked) {
		return true
	}
	if p.isConcrete() || !asked.isConcrete() {
		return false
	}
	_, ok := p.values(asked.text(), empty)
	return ok
}

// same reports whether two patterns have the same texts and parameters.
func (p pattern) same(other pattern) bool {
	if len(p) != len(other) {
		return false
	}
	for i := range p {
		if p[i].text != other[i].text || p[i].name != other[i].name {
			return false
		}
	}
	return true
}

// values returns what stands in a text at the pattern's parameters, in their order; false where the text is not of its form. Where there are several ways, it is
// one of them: all give the same text again. empty says whether a value may be empty.
func (p pattern) values(text string, empty bool) (all []string, ok bool) {
	if len(p) > 0 && p[0].name == "" {
		if text, ok = strings.CutPrefix(text, p[0].text); !ok {
			return nil, false
		}
		p = p[1:]
	}
	least := 1
	if empty {
		least = 0
	}
	for ; len(p) > 0; p = p[min(2, len(p)):] { // a parameter, and mostly a text
		at := p.ends(text, least)
		if at < least {
			return nil, false
		}
		all, text = append(all, text[:at]), text[at:]
		if len(p) > 1 {
			text = text[len(p[1].text):]
		}
	}
	return all, text == ""
}

// ends returns where the parameter that a pattern begins with ends in a text, of which it has some bytes at least; -1 for nowhere.
func (p pattern) ends(text string, least int) int {
	switch {
	case len(p) == 1:
		return len(text)
	case len(p) == 2: // its text is the last of all
		if !strings.HasSuffix(text, p[1].text) {
			return -1
		}
		return len(text) - len(p[1].text)
	case len(text) < least:
		return -1
	}
	at := strings.Index(text[least:], p[1].text)
	if at < 0 {
		return -1
	}
	return least + at
}
