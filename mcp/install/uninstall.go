package install

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
)

// Removal returns what takes a host's configuration away again: the server of that name, and the hooks and rules that
// [New] adds beside it. It reads the host's files, and writes nothing. Program, Agent, URL, TokenFile and Spaces are
// those of the server that is there; where it is not there any more, those that are given.
func Removal(c Config) (Plan, error) {
	p, err := New(c)
	if err != nil {
		return p, err
	}
	for _, f := range p.Files {
		command, err := f.server(c.withDefaults().Name)
		if err != nil {
			return p, err
		}
		if command != nil {
			if p, err = New(c.startedBy(command)); err != nil {
				return p, err
			}
			break
		}
	}
	p.removes, p.Notes = true, nil
	for k := range p.Files {
		p.Files[k].change = removal{p.Files[k].change}
	}
	return p, nil
}

// startedBy returns the configuration that has made a host start its server by a command.
func (c Config) startedBy(command []string) Config {
	c.Program, c.URL, c.TokenFile, c.Spaces = command[0], "", "", nil
	for k := 1; k+1 < len(command); k++ {
		switch value := command[k+1]; command[k] {
		case "--as":
			c.Agent = value
		case "--url":
			c.URL = value
		case "--token-file":
			c.TokenFile = value
		case "--space":
			c.Spaces = append(c.Spaces, value)
		}
	}
	return c
}

// server returns the command that starts the server of a name; nil where the file has none.
func (f File) server(name string) ([]string, error) {
	at, err := f.behindLinks()
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	root, err := os.OpenRoot(at.root)
	if err != nil {
		return nil, err
	}
	defer root.Close()
	content, err := read(root, at.name)
	if err != nil || content == nil {
		return nil, err
	}
	switch change := f.change.(type) {
	case jsonEdits:
		return change.server(content), nil
	case tomlTable:
		all, _ := change.servers(content) // what is no TOML is told when it is changed
		return commandOf(all[name]), nil
	}
	return nil, nil
}

// server returns the command of the server that the first edit adds; nil where there is none.
func (j jsonEdits) server(content []byte) []string {
	value := decode(content)
	for _, name := range j[0].path {
		o, _ := value.(map[string]any)
		value = o[name]
	}
	return commandOf(value)
}

// commandOf returns the words of the command in a host's description of a server; nil where it has none.
func commandOf(server any) (words []string) {
	o, _ := server.(map[string]any)
	for _, name := range []string{"command", "args"} {
		switch v := o[name].(type) {
		case string:
			words = append(words, v)
		case []any:
			for _, w := range v {
				word, _ := w.(string)
				words = append(words, word)
			}
		}
	}
	return words
}

// removal takes away what a change adds.
type removal struct{ change }

// apply returns nil where nothing is left that is not of Agora.
func (r removal) apply(content []byte) ([]byte, error) {
	if content == nil {
		return nil, nil
	}
	switch change := r.change.(type) {
	case jsonEdits:
		return change.remove(content)
	case tomlTable:
		return change.remove(content)
	case wholeFile:
		if string(content) == string(change) {
			return nil, nil
		}
	}
	return content, nil
}

// remove returns a document without what the edits add; nil where that is all it has.
func (j jsonEdits) remove(content []byte) ([]byte, error) {
	if len(bytes.TrimSpace(content)) == 0 {
		return content, nil
	}
	if !json.Valid(content) {
		return nil, errors.New("it is not valid JSON; comments are none")
	}
	doc, plain := json.RawMessage(content), jsonEdits{}
	var err error
	for _, e := range j {
		if len(e.path) == 1 && e.command == "" { // such as a version: it is of the host, and stays with what is the user's
			plain = append(plain, e)
			continue
		}
		if doc, err = e.remove(doc, e.path); err != nil {
			return nil, err
		}
	}
	if sameJSON(content, doc) {
		return content, nil
	}
	rest := doc
	for _, e := range plain {
		if rest, err = e.remove(rest, e.path); err != nil {
			return nil, err
		}
	}
	if sameJSON(rest, json.RawMessage("{}")) {
		return nil, nil
	}
	var b bytes.Buffer
	err = json.Indent(&b, doc, "", "  ")
	b.WriteByte('\n')
	return b.Bytes(), err
}

// remove returns a value without what the edit adds at a path below it, and without what is empty then.
func (e edit) remove(raw json.RawMessage, path []string) (json.RawMessage, error) {
	switch {
	case raw == nil:
		return nil, nil
	case len(path) == 0 && e.command == "":
		return nil, nil
	case len(path) == 0:
		return without(raw, e.command), nil
	}
	o, err := parseObject(raw)
	if err != nil {
		return nil, fmt.Errorf("what %s stands in %w", path[0], err)
	}
	was := o.get(path[0])
	if was == nil {
		return raw, nil
	}
	value, err := e.remove(was, path[1:])
	if err != nil {
		return nil, err
	}
	if value == nil || !sameJSON(was, value) && (string(value) == "{}" || string(value) == "[]") {
		return slices.DeleteFunc(o, func(m member) bool { return m.name == path[0] }).raw(), nil
	}
	return o.with(path[0], value).raw(), nil
}

// without returns a list of hooks without those that run a command. What else stands in a group stays.
func without(raw json.RawMessage, command string) json.RawMessage {
	var list, kept []json.RawMessage
	if json.Unmarshal(raw, &list) != nil {
		return raw
	}
	for _, entry := range list {
		o, err := parseObject(entry)
		switch within := o.get("hooks"); {
		case !runs(decode(entry), command):
			kept = append(kept, entry)
		case err == nil && within != nil:
			if rest := without(within, command); string(rest) != "[]" {
				kept = append(kept, o.with("hooks", rest).raw())
			}
		}
	}
	if kept == nil {
		return json.RawMessage("[]")
	}
	return encode(kept)
}

// header begins a table of TOML.
var header = regexp.MustCompile(`^[ \t]*\[`)

// remove returns a document without the table, and those below it; nil where that is all it has. All else stays as it
// is, byte for byte.
func (t tomlTable) remove(content []byte) ([]byte, error) {
	have, err := t.servers(content)
	if err != nil {
		return nil, fmt.Errorf("it is not valid TOML: %w", err)
	}
	if _, there := have[t.name]; !there {
		return content, nil
	}
	own := regexp.MustCompile(`^[ \t]*\[[ \t]*mcp_servers[ \t]*\.[ \t]*"?` + regexp.QuoteMeta(t.name) + `"?[ \t]*[\].]`)
	var kept []string
	within := false
	for line := range strings.Lines(string(content)) {
		if header.MatchString(line) {
			within = own.MatchString(line)
		}
		if !within {
			kept = append(kept, line)
		}
	}
	for within && len(kept) > 0 && strings.TrimSpace(kept[len(kept)-1]) == "" { // that stood before the table
		kept = kept[:len(kept)-1]
	}
	if len(kept) == 0 {
		return nil, nil
	}
	rest := []byte(strings.Join(kept, ""))
	if left, err := t.servers(rest); err != nil || left[t.name] != nil || len(left) != len(have)-1 {
		return nil, fmt.Errorf("its mcp_servers.%s is not a table of its own: remove it there by hand", t.name)
	}
	return rest, nil
}
