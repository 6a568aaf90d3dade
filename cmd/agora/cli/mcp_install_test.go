package cli

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"github.com/agora-relay/agora/cmd/agora/exit"
	"github.com/agora-relay/agora/mcp/install"
)

// verbResult is how a verb ended.
type verbResult struct {
	status         int
	stdout, stderr string
}

// runVerb runs a verb alone, and returns what it prints and its status.
func runVerb(t *testing.T, cmd *cobra.Command, stdin string, args ...string) verbResult {
	t.Helper()
	var out, errs bytes.Buffer
	cmd.SetIn(strings.NewReader(stdin))
	cmd.SetOut(&out)
	cmd.SetErr(&errs)
	cmd.SetArgs(args)
	cmd.SilenceErrors, cmd.SilenceUsage = true, true
	status := 0
	if err := cmd.ExecuteContext(t.Context()); err != nil {
		status = exit.Status(err)
	}
	return verbResult{status, out.String(), errs.String()}
}

// installs runs the verb install in a directory, as a user whose home lies beside it.
func installs(t *testing.T, dir string, args ...string) verbResult {
	t.Helper()
	return runVerb(t, (&mcpInstall{cfg: install.Config{Dir: dir, Home: filepath.Dir(dir), Program: "agora"}}).command(), "", args...)
}

func TestInstallNamesTheAgentAfterHostAndDirectory(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "my project")
	if r := installs(t, dir, "codex"); r.status != 0 || !strings.Contains(r.stdout, `args = ["mcp", "--as", "auto:codex-my project"]`) {
		t.Errorf("install: %+v", r)
	}
	if all, err := os.ReadDir(filepath.Dir(dir)); err != nil || len(all) > 0 {
		t.Errorf("without --write there is %v, %v", all, err)
	}
}

func TestInstallWritesAndTellsNoToken(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "project")
	if err := os.MkdirAll(filepath.Join(dir, "secret"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "secret/token"), []byte("s3cret\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	args := []string{"claude-code", "--write", "--as", "claude-1", "--token-file", "secret/token", "--space", "general", "--name", "relay"}
	r := installs(t, dir, args...)
	for _, name := range []string{".mcp.json", ".claude/settings.json"} {
		b, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil || strings.Contains(string(b), "s3cret") || !strings.Contains(string(b), filepath.Join(dir, "secret/token")) {
			t.Errorf("%s has %s, %v", name, b, err)
		}
		if !strings.Contains(r.stdout, filepath.Join(dir, name)+" has ") || strings.Contains(r.stdout, "s3cret") {
			t.Errorf("it prints %q", r.stdout)
		}
	}
	if r := installs(t, dir, args...); r.status != 0 || !strings.Contains(r.stdout, " is as it was") {
		t.Errorf("the second time: %+v", r)
	}
	if r := installs(t, dir, "claude-code", "--write", "--as", "claude-2", "--name", "relay"); r.status != exit.Error || !strings.Contains(r.stderr, "it has another mcpServers.relay") {
		t.Errorf("of another agent: %+v", r)
	}
}

func TestInstallSaysWhatItTakes(t *testing.T) {
	t.Parallel()
	for want, args := range map[string][]string{
		`invalid argument "emacs"`:               {"emacs"},
		"accepts 1 arg(s)":                       {},
		"claude-desktop reads no files":          {"claude-desktop", "--scope", "project"},
		`no scope is called "all"`:               {"gemini", "--scope", "all"},
		"agent id 'agora' is the cluster's own":  {"gemini", "--as", "agora"},
		"agent id has the unprintable character": {"gemini", "--as", "a\x07"},
	} {
		if r := installs(t, t.TempDir(), args...); r.status != exit.Usage || !strings.Contains(r.stderr, want) || r.stdout != "" {
			t.Errorf("%q: %+v, want %q", args, r, want)
		}
	}
}

func TestTheProgramIsNamedByItsPathUnlessPathLeadsToIt(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	t.Setenv("PATH", dir)
	if got, err := ownCommand(); err != nil || got != self {
		t.Errorf("where PATH has no agora it is %q, %v, want %q", got, err, self)
	}
	if err := os.WriteFile(filepath.Join(dir, "agora"), nil, 0o755); err != nil {
		t.Fatal(err)
	}
	if got, err := ownCommand(); err != nil || got != self {
		t.Errorf("where PATH has another agora it is %q, %v, want %q", got, err, self)
	}
	if err := os.Remove(filepath.Join(dir, "agora")); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(self, filepath.Join(dir, "agora")); err != nil {
		t.Fatal(err)
	}
	if got, err := ownCommand(); err != nil || got != "agora" {
		t.Errorf("where PATH leads to it, it is %q, %v, want agora", got, err)
	}
}

func TestTextIsPutBeforeTheModelInTheHostsJSON(t *testing.T) {
	t.Parallel()
	want := `{"hookSpecificOutput":{"additionalContext":"2 messages wait","hookEventName":"BeforeAgent"}}` + "\n"
	if r := runVerb(t, newMCPContext(), "2 messages wait\n", "BeforeAgent"); r != (verbResult{stdout: want}) {
		t.Errorf("it is %+v, want %q", r, want)
	}
	if r := runVerb(t, newMCPContext(), "", "BeforeAgent"); r != (verbResult{}) {
		t.Errorf("no text: %+v, want nothing", r)
	}
	if r := runVerb(t, newMCPContext(), "x", "Stop"); r.status != exit.Usage {
		t.Errorf("an event that is none: %+v", r)
	}
}

func TestFilesOfATeamMakeEachUserAnAgentOfItsOwn(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "project")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	t.Setenv("USER", "anna")
	for _, host := range install.Hosts() {
		if r := installs(t, dir, host, "--write"); r.status != 0 || strings.Contains(r.stdout, "anna") {
			t.Errorf("%s: %+v", host, r)
		}
	}
	err := filepath.WalkDir(filepath.Dir(dir), func(path string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		b, err := os.ReadFile(path)
		if strings.Contains(string(b), "anna") {
			t.Errorf("%s has %s", path, b)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	for as, want := range map[string]string{"auto:codex-project": "codex-project-", "auto": "project-", "anna": "", "auto-pilot": ""} {
		for _, name := range []string{"anna", "ben"} {
			t.Setenv("USER", name)
			id := want + name
			if want == "" {
				id = as
			}
			if got := autoID(as, dir); got != id {
				t.Errorf("for %s %s is %s, want %s", name, as, got, id)
			}
		}
	}
	t.Setenv("USER", `ACME\carl `)
	if got := autoID("auto:x", dir); got != "x-carl" {
		t.Errorf("with a domain it is %q", got)
	}
}

func TestUninstallTakesAwayWhatInstallHasWritten(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "project")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	uninstalls := func(args ...string) verbResult {
		return runVerb(t, (&mcpInstall{cfg: install.Config{Dir: dir, Home: filepath.Dir(dir), Program: "agora"}}).uninstall(), "", args...)
	}
	installs(t, dir, "claude-code", "--write", "--as", "claude-1", "--url", "ws://127.0.0.1:1")
	if r := uninstalls("claude-code"); r.status != 0 || !strings.Contains(r.stdout, "Remove from "+filepath.Join(dir, ".mcp.json")) || !strings.Contains(r.stdout, "claude-1") {
		t.Errorf("without --write: %+v", r)
	}
	if r := uninstalls("claude-code", "--write"); r.status != 0 || !strings.Contains(r.stdout, ".mcp.json is removed") {
		t.Errorf("uninstall: %+v", r)
	}
	if _, err := os.Stat(filepath.Join(dir, ".mcp.json")); !os.IsNotExist(err) {
		t.Errorf("there is still a file: %v", err)
	}
}

func TestTheVerbsOfMCPFillInWhatThisMachineIs(t *testing.T) {
	t.Parallel()
	if r := runVerb(t, newMCPInstall(), "", "gemini"); r.status != 0 || !strings.Contains(r.stdout, "gemini-cli") { // whose name is cli
		t.Errorf("in this directory: %+v", r)
	}
}
