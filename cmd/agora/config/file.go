package config

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/spf13/pflag"
	"go.yaml.in/yaml/v3"
)

// fileValue is what a file says of one setting, spelled as it stands there: a
// password of digits must not become a number on the way.
type fileValue struct {
	key   string
	words []string // one, or those of a list
	list  bool
	line  int
}

// readSettings reads a file of settings: YAML, with keys nested or written with
// dots. It returns them in their order, and an error for whatever can't be read.
func readSettings(path string) ([]fileValue, error) {
	b, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	d := yaml.NewDecoder(bytes.NewReader(b))
	var doc, more yaml.Node
	if err := d.Decode(&doc); errors.Is(err, io.EOF) {
		return nil, nil // nothing in it
	} else if err != nil {
		return nil, fmt.Errorf("%s: %s", path, strings.TrimPrefix(oneLine(err), "yaml: "))
	}
	if err := d.Decode(&more); !errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("%s: there may be one document only", path)
	}
	r := fileReader{path: path, seen: map[string]int{}}
	r.walk("", doc.Content[0])
	return r.values, errors.Join(r.faults...)
}

// fileReader walks through a file.
type fileReader struct {
	path   string
	values []fileValue
	seen   map[string]int // the line of each key
	faults []error
}

func (r *fileReader) fault(n *yaml.Node, format string, args ...any) {
	r.faults = append(r.faults, fmt.Errorf("%s:%d: %s", r.path, n.Line, fmt.Sprintf(format, args...)))
}

func (r *fileReader) walk(key string, n *yaml.Node) {
	if n.Kind == yaml.AliasNode {
		n = n.Alias
	}
	switch {
	case n.Kind == yaml.MappingNode:
		for i := 0; i+1 < len(n.Content); i += 2 {
			name := n.Content[i].Value
			if key != "" {
				name = key + "." + name
			}
			r.walk(name, n.Content[i+1])
		}
	case key == "":
		r.fault(n, "want settings, such as \"session.grace: 30s\"")
	case n.Kind == yaml.ScalarNode && n.Tag == "!!null" && n.Value == "":
		r.fault(n, "%s has no value", key)
	case n.Kind == yaml.ScalarNode:
		r.add(n, fileValue{key: key, words: []string{n.Value}, line: n.Line})
	default:
		v := fileValue{key: key, list: true, line: n.Line}
		for _, item := range n.Content {
			if item.Kind != yaml.ScalarNode {
				r.fault(item, "%s: want plain values in the list", key)
				return
			}
			v.words = append(v.words, item.Value)
		}
		r.add(n, v)
	}
}

func (r *fileReader) add(n *yaml.Node, v fileValue) {
	if first, twice := r.seen[v.key]; twice {
		r.fault(n, "%s was set in line %d already", v.key, first)
		return
	}
	r.seen[v.key] = n.Line
	r.values = append(r.values, v)
}

// set gives a flag the value.
func (v fileValue) set(f *pflag.Flag) error {
	if !v.list {
		return f.Value.Set(v.words[0])
	}
	switch value := f.Value.(type) {
	case pflag.SliceValue:
		return value.Replace(v.words)
	case *addresses:
		return value.Set(strings.Join(v.words, ","))
	}
	return errors.New("want one value, not a list")
}

// unknownSetting says that there is no such setting, and which one may be meant.
func unknownSetting(key string, known []string) error {
	var group []string
	for _, name := range known {
		if strings.HasPrefix(name, key+".") {
			group = append(group, name)
		}
	}
	if len(group) > 0 {
		return fmt.Errorf("%s is a group of settings: say which, for example %s", key, group[0])
	}
	if nearest := nearestOf(key, known); nearest != "" {
		return fmt.Errorf("%s is no setting: do you mean %s?", key, nearest)
	}
	return fmt.Errorf("%s is no setting; `agora config show` lists them all", key)
}

// nearestOf returns the name that somebody may have meant by another; "" where none is near.
func nearestOf(name string, known []string) string {
	if len(known) == 0 {
		return ""
	}
	nearest := slices.MinFunc(known, func(a, b string) int { return distance(name, a) - distance(name, b) })
	if distance(name, nearest) > max(2, len(nearest)/3) {
		return ""
	}
	return nearest
}

// distance is how many letters must be changed, added or taken away to make b of a.
func distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		before := row[0]
		row[0] = i + 1
		for j := range len(b) {
			cost := before
			if a[i] != b[j] {
				cost++
			}
			before = row[j+1]
			row[j+1] = min(cost, row[j]+1, before+1)
		}
	}
	return row[len(b)]
}

// oneLine returns what err says, on one line.
func oneLine(err error) string { return strings.Join(strings.Fields(err.Error()), " ") }
