package cli

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// eachVerb calls f for every verb, those below others included.
func eachVerb(f func(*cobra.Command)) {
	root := &cobra.Command{Use: "agora"}
	AddCommands(root)
	var walk func(*cobra.Command)
	walk = func(cmd *cobra.Command) {
		f(cmd)
		for _, sub := range cmd.Commands() {
			walk(sub)
		}
	}
	walk(root)
}

func TestEveryFileOfASecretThatAVerbTakesIsLookedAt(t *testing.T) {
	ofSecret := regexp.MustCompile(`(^|[.-])(key|token-file|secret-file|creds|seed)$`)
	var found []string
	eachVerb(func(cmd *cobra.Command) {
		cmd.Flags().VisitAll(func(f *pflag.Flag) {
			if !ofSecret.MatchString(f.Name) {
				return
			}
			found = append(found, f.Name)
			if !slices.Contains(secretFlags, f.Name) {
				t.Errorf("%s --%s: nobody is warned where every user of the machine can read it", cmd.CommandPath(), f.Name)
			}
		})
	})
	for _, name := range secretFlags {
		if !slices.Contains(found, name) {
			t.Errorf("no verb has --%s", name)
		}
	}
}

func TestWhoeverRunsAVerbIsWarnedOfSecretsThatEveryUserCanRead(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("a mode tells nothing there")
	}
	path := filepath.Join(t.TempDir(), "secret")
	if err := os.WriteFile(path, []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	for mode, warned := range map[os.FileMode]bool{0o600: false, 0o640: false, 0o644: true, 0o602: true} {
		if err := os.Chmod(path, mode); err != nil {
			t.Fatal(err)
		}
		for _, args := range [][]string{
			{"send", "--to", "b", "text", "--url", "ws://127.0.0.1:1", "--from", "a", "--token-file", path},
			{"sidecar", "--agent-url", "127.0.0.1:1", "--p2p-key", path},
			{"kick", "a", "--admin", "http://127.0.0.1:1", "--admin.token-file", path},
			{"mcp", "join", "--as", "a", "--url", "127.0.0.1:1", "--token-file", path},
		} {
			ctx, cancel := context.WithCancel(t.Context())
			cancel() // the verb has nothing to do
			root, said := &cobra.Command{Use: "agora", SilenceUsage: true, SilenceErrors: true}, new(bytes.Buffer)
			AddCommands(root)
			root.SetArgs(args)
			root.SetErr(said)
			root.SetOut(said)
			_ = root.ExecuteContext(ctx)
			if is := strings.Contains(said.String(), "every user of this machine can read or change "+path); is != warned {
				t.Errorf("%s with mode %o says: %s", args, mode, said)
			}
		}
	}
}
