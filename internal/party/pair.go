package party

import "strings"

// Doors returns the adapters of all doors. A new one comes last.
func Doors() []Door { return []Door{Core(), REST(), WebSocket(), IAT(), IATSocket(), AIP(), Sidecar()} }

// Pair is a door that speaks and one that listens.
type Pair struct{ Sender, Receiver Door }

// Name names the pair in tests.
func (p Pair) Name() string { return p.Sender.Name + " to " + p.Receiver.Name }

// live reports whether what is said between the two is part of a call that stands at both ends. Then a message is a
// stream without chunks, what one agent says in several may come in any order, no receiver learns why a stream was
// given up, and a sender hears that it is refused as it hears that it is given up, and nothing where it is taken.
func (p Pair) live() bool { return p.Sender.Can&p.Receiver.Can&Mails == 0 }

// Pairs returns the pairs that the tests of a door play: itself, and each that stands before it in [Doors], both ways.
// Pairs that can do nothing together are not among them.
func Pairs(of Door) (pairs []Pair) {
	add := func(p Pair) {
		if _, all := p.leftOut(); !all {
			pairs = append(pairs, p)
		}
	}
	for _, d := range Doors() {
		add(Pair{d, of})
		if d.Name == of.Name {
			return pairs
		}
		add(Pair{of, d})
	}
	return pairs
}

// lacks says what a pair can't of what a scenario needs; empty when it can all.
func (p Pair) lacks(sc *scenario) string {
	var lacks []string
	if t := sc.sender &^ p.Sender.Can; t != 0 {
		lacks = append(lacks, "a sender that "+t.String())
	}
	if t := sc.receiver &^ p.Receiver.Can; t != 0 {
		lacks = append(lacks, "a receiver that "+t.String())
	}
	return strings.Join(lacks, ", ")
}

// concerns reports whether a scenario is about a pair: one without a receiver is about a door alone.
func (p Pair) concerns(sc *scenario) bool {
	return sc.receiver != 0 || p.Sender.Name == p.Receiver.Name
}

// leftOut lists the scenarios about a pair that it does not play, each with what it lacks for them; all tells that
// these are all there are.
func (p Pair) leftOut() (out []string, all bool) {
	all = true
	for _, st := range stages() {
		for i := range st.scenarios {
			switch why := p.lacks(&st.scenarios[i]); {
			case !p.concerns(&st.scenarios[i]):
			case why != "":
				out = append(out, st.scenarios[i].name+": for want of "+why)
			default:
				all = false
			}
		}
	}
	return out, all
}
