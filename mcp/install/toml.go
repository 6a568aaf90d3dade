package install

import (
	"bytes"
	"errors"
	"fmt"
	"regexp"
	"strings"

	"github.com/BurntSushi/toml"
)

// tomlTable is a server's table in Codex' configuration.
type tomlTable struct {
	name string
	server
}

// socketsIn is the variable that names where the server has the socket at which hooks ask it. Codex hands a server only
// the variables that are listed, and a hook all: without it the two look in different places, and a hook has nothing to
// tell.
const socketsIn = "XDG_RUNTIME_DIR"

func (t tomlTable) text() string {
	args := make([]string, len(t.Args))
	for k, a := range t.Args {
		args[k] = tomlString(a)
	}
	return fmt.Sprintf("[mcp_servers.%s]\ncommand = %s\nargs = [%s]\nenv_vars = [%s]\n",
		t.name, tomlString(t.Command), strings.Join(args, ", "), tomlString(socketsIn))
}

// tomlString returns text as a basic string. It has no control characters.
func tomlString(s string) string {
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(s) + `"`
}

// inline is where all servers are one value. A document that has this in some text is refused in vain, and nothing is
// lost.
var inline = regexp.MustCompile(`(?m)^[ \t]*(mcp_servers|"mcp_servers"|'mcp_servers')[ \t]*=`)

// apply appends the table: what stands there, comments too, stays as it is, byte for byte.
func (t tomlTable) apply(content []byte) ([]byte, error) {
	have, err := t.servers(content)
	if err != nil {
		return nil, fmt.Errorf("it is not valid TOML: %w", err)
	}
	want, err := t.servers([]byte(t.text()))
	if err != nil {
		return nil, err
	}
	if there, ok := have[t.name]; ok {
		if !covers(there, want[t.name]) {
			return nil, fmt.Errorf("it has another mcp_servers.%s; remove that first, with its hooks, or give another --name", t.name)
		}
		return content, nil
	}
	if inline.Match(content) {
		return nil, errors.New("its mcp_servers is one value, to which no table can be added: add the server there by hand")
	}
	b := bytes.Clone(content)
	if len(b) > 0 {
		if b[len(b)-1] != '\n' {
			b = append(b, '\n')
		}
		b = append(b, '\n')
	}
	b = append(b, t.text()...)
	_, err = t.servers(b)
	return b, err
}

// servers returns the tables of servers that a document has.
func (t tomlTable) servers(content []byte) (map[string]any, error) {
	var doc struct {
		Servers map[string]any `toml:"mcp_servers"`
	}
	err := toml.Unmarshal(content, &doc)
	return doc.Servers, err
}
