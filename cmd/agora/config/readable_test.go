package config

import (
	"bytes"
	"log/slog"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/spf13/pflag"
)

// ofSecret finds the settings that name a file of a secret, by how settings are called.
var ofSecret = regexp.MustCompile(`(^|[.-])(key|nkey|creds|token-file|secret-file|password-file|seed)$`)

// Each setting that names a file of a secret is looked at: a new one is to be among them.
func TestNoFileOfASecretIsTakenThatEveryUserCanRead(t *testing.T) {
	at := t.TempDir()
	var names []string
	o := new(Edge)
	f := pflag.NewFlagSet("", pflag.ContinueOnError)
	o.Flags(f)
	f.VisitAll(func(flag *pflag.Flag) {
		if ofSecret.MatchString(flag.Name) && flag.Name != "p2p.cluster-key" { // which is the key itself
			names = append(names, flag.Name)
		}
	})
	if len(names) < 8 {
		t.Fatalf("settings of secrets are %q", names)
	}
	for _, name := range append(names, "auth") {
		for mode, refused := range map[os.FileMode]bool{0o600: false, 0o400: false, 0o440: false, 0o640: false, 0o644: true, 0o604: true, 0o666: true, 0o602: true} {
			path := filepath.Join(at, "secret")
			if err := os.WriteFile(path, []byte("x"), 0o600); err != nil {
				t.Fatal(err)
			}
			if err := os.Chmod(path, mode); err != nil {
				t.Fatal(err)
			}
			link := filepath.Join(at, "link") // as Kubernetes has them
			_ = os.Remove(link)
			if err := os.Symlink(path, link); err != nil {
				t.Fatal(err)
			}
			for _, named := range []string{path, link} {
				o := new(Edge)
				f := pflag.NewFlagSet("", pflag.ContinueOnError)
				o.Flags(f)
				value := named
				if name == "auth" {
					value = "jwt,file:" + named
				}
				if err := f.Set(name, value); err != nil {
					t.Fatal(err)
				}
				if err := o.CheckReadable(); (err != nil) != refused || refused && (!strings.HasPrefix(err.Error(), name+": ") || !strings.Contains(err.Error(), named)) {
					t.Errorf("%s with mode %o: %v", name, mode, err)
				}
				if err := f.Set("auth.allow-readable", "true"); err != nil || o.CheckReadable() != nil {
					t.Errorf("%s with mode %o, insisted on: %v, %v", name, mode, err, o.CheckReadable())
				}
			}
			if err := os.Remove(path); err != nil {
				t.Fatal(err)
			}
		}
	}
}

func TestWhatIsTriedOutIsWarnedOfSecretsThatEveryUserCanRead(t *testing.T) {
	path := filepath.Join(t.TempDir(), "tokens")
	if err := os.WriteFile(path, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(path, 0o644); err != nil {
		t.Fatal(err)
	}
	warned := func(args ...string) string {
		t.Helper()
		o, f, said := new(Dev), pflag.NewFlagSet("", pflag.ContinueOnError), new(bytes.Buffer)
		o.Flags(f)
		if err := f.Parse(args); err != nil {
			t.Fatal(err)
		}
		o.WarnReadable(slog.New(slog.NewTextHandler(said, nil)))
		return said.String()
	}
	if said := warned("--auth", "file:"+path); !strings.Contains(said, "level=WARN") || !strings.Contains(said, path) {
		t.Errorf("said: %s", said)
	}
	if said := warned("--auth", "file:"+path, "--auth.allow-readable"); said != "" {
		t.Errorf("insisted on: %s", said)
	}
}
