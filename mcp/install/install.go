package install

import (
	"errors"
	"fmt"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"unicode"
)

// Scope says for whom a host is configured.
type Scope string

// Scopes.
const (
	Project Scope = "project" // for who works in one directory
	User    Scope = "user"    // for one user, wherever the host is started
)

// Config says which host is configured, and how it starts Agora. Host, Dir, Home, Program and Agent are required.
type Config struct {
	Host  string // one of [Hosts]
	Name  string // of the server, as the host shows it; "agora" if empty
	Scope Scope  // Project if empty, and User for hosts that read no files of a project

	Dir    string              // absolute path of the project
	Home   string              // absolute path of the user's home
	Getenv func(string) string // finds homes of hosts that are elsewhere; nil: none is
	System string              // operating system, as [runtime.GOOS] names it; that of this program if empty

	Program   string   // name or absolute path of the program agora
	Agent     string   // id that the host's model has in the cluster, or what the program makes one of: see [Auto]
	URL       string   // addresses of edges, separated by commas; empty: those that the program has of its own
	TokenFile string   // absolute path of the file with the credentials; empty: none
	Spaces    []string // that the agent joins
}

// Plan is what configures a host.
type Plan struct {
	Files []File
	Notes []string // what the user has to do besides, in sentences

	removes bool // it takes away
}

// New returns what configures a host. It reads and writes nothing. The error says what in the configuration can't be.
func New(c Config) (Plan, error) {
	c = c.withDefaults()
	if err := c.check(); err != nil {
		return Plan{}, err
	}
	p := hosts[c.Host](c)
	for k := range p.Files {
		p.Files[k].private, p.Files[k].root = c.Scope == User, c.rootOf(p.Files[k].Path)
	}
	p.Notes = append(p.Notes, c.whose()...)
	return p, nil
}

// Auto begins what stands for an agent's id where several people have a file: "auto:NAME" is NAME, and the name of the
// user who starts the host.
const Auto = "auto"

// whose says who is the agent.
func (c Config) whose() []string {
	name, auto := strings.CutPrefix(c.Agent, Auto+":")
	switch {
	case c.Scope == User:
		if auto {
			name += "-" + userName
		}
		return []string{fmt.Sprintf("Every session is the agent %s: of two at a time the first one has the id, and the tools of the other say so.", name)}
	case auto:
		return []string{fmt.Sprintf("Each user is an agent of its own, %s-%s: these files may be shared.", name, userName)}
	}
	return []string{fmt.Sprintf("Whoever has these files is the agent %s: of two at a time the first one has the id. Leave out --as where they are shared.", c.Agent)}
}

const userName = "<your user name>"

// OfUser reports whether a scope of a host is a user's; the empty one is what the host reads.
func OfUser(host string, scope Scope) bool {
	return Config{Host: host, Scope: scope}.withDefaults().Scope == User
}

// rootOf returns the directory that no link of a file leads out of: the project, the user's home, or where the user has
// said that a host has its own.
func (c Config) rootOf(path string) string {
	root := c.Dir
	if c.Scope == User {
		root = c.Home
	}
	if name, err := filepath.Rel(root, path); err == nil && filepath.IsLocal(name) {
		return root
	}
	return filepath.Dir(path)
}

func (c Config) withDefaults() Config {
	if c.Name == "" {
		c.Name = "agora"
	}
	switch {
	case c.Scope != "":
	case slices.Contains(ofUsersAlone, c.Host):
		c.Scope = User
	default:
		c.Scope = Project
	}
	if c.Getenv == nil {
		c.Getenv = func(string) string { return "" }
	}
	return c
}

// serverName is what every host takes as the name of a server.
var serverName = regexp.MustCompile(`^[A-Za-z0-9_-]{1,64}$`)

// longest is the most bytes of one value.
const longest = 4096

func (c Config) check() error {
	switch {
	case hosts[c.Host] == nil:
		return fmt.Errorf("no host is called %q: say one of %s", c.Host, strings.Join(Hosts(), ", "))
	case c.Scope != Project && c.Scope != User:
		return fmt.Errorf("no scope is called %q: say project or user", c.Scope)
	case c.Scope == Project && slices.Contains(ofUsersAlone, c.Host):
		return fmt.Errorf("%s reads no files of a project: say --scope user", c.Host)
	case !serverName.MatchString(c.Name):
		return fmt.Errorf("a server can't be called %q: a name has 1 to 64 letters, digits, - and _", c.Name)
	case !filepath.IsAbs(c.Dir) || !filepath.IsAbs(c.Home):
		return errors.New("the directories of project and user must be absolute")
	case c.TokenFile != "" && !filepath.IsAbs(c.TokenFile):
		return errors.New("the path of the token's file must be absolute")
	case c.Program == "" || c.Agent == "":
		return errors.New("program and agent must be named")
	}
	for _, s := range append([]string{c.Program, c.Agent, c.URL, c.TokenFile}, c.Spaces...) {
		if err := checkValue(s); err != nil {
			return err
		}
	}
	return nil
}

// checkValue refuses what a host would not hand on as it is: hosts put variables of the environment in place of $NAME.
func checkValue(s string) error {
	switch {
	case len(s) > longest:
		return fmt.Errorf("a value is longer than %d bytes", longest)
	case strings.Contains(s, "$"):
		return fmt.Errorf("%q has a $, which hosts take for a variable of the environment", s)
	case strings.ContainsFunc(s, unicode.IsControl):
		return fmt.Errorf("%q has a control character", s)
	}
	return nil
}
