package tools

import (
	"errors"
	"regexp"
	"regexp/syntax"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

// Bounds of regular expressions: a short one can stand for a program of millions of steps.
const (
	maxPattern  = 1024  // bytes of one
	maxProgram  = 4096  // steps of one
	maxPrograms = 16384 // steps of all in a schema
)

const notPattern = "not a regular expression in the syntax of RE2, or too large a one"

// pattern is a regular expression and how large its program is.
type pattern struct {
	*regexp.Regexp
	steps int
}

// patterns compiles the regular expressions of one schema, each once.
type patterns struct {
	known map[string]*pattern // nil for those that are none
	steps int
}

func newPatterns() *patterns { return &patterns{known: map[string]*pattern{}} }

// engine is compile as the library calls it.
func (ps *patterns) engine(s string) (jsonschema.Regexp, error) {
	if p := ps.compile(s); p != nil {
		return p, nil
	}
	return nil, errors.New(notPattern)
}

// compile returns a regular expression; nil where it is none that may be used.
func (ps *patterns) compile(s string) *pattern {
	if p, ok := ps.known[s]; ok {
		return p
	}
	ps.known[s] = nil
	if len(s) > maxPattern {
		return nil
	}
	tree, err := syntax.Parse(s, syntax.Perl)
	if err != nil {
		return nil
	}
	steps := program(tree)
	if ps.steps += steps; steps > maxProgram || ps.steps > maxPrograms {
		return nil
	}
	re, err := regexp.Compile(s)
	if err != nil {
		return nil
	}
	ps.known[s] = &pattern{re, steps}
	return ps.known[s]
}

// program returns about how many steps the program of an expression has, or something beyond maxProgram.
func program(re *syntax.Regexp) int {
	n := 1 + len(re.Rune)/16
	if re.Op == syntax.OpLiteral {
		n = 1 + len(re.Rune)
	}
	for _, sub := range re.Sub {
		n = min(n+program(sub), 2*maxProgram)
	}
	if re.Op == syntax.OpRepeat {
		n *= max(re.Min, re.Max, 1) + 1
	}
	return min(n, 2*maxProgram)
}
