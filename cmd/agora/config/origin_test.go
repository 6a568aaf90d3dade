package config

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// filled gives an edge's settings what a file and an environment say. It returns the file's path too.
func filled(t *testing.T, file string, env map[string]string) (e *Edge, from origins, path string, err error) {
	t.Helper()
	e = new(Edge)
	f := defined(e.Flags)
	path = filepath.Join(t.TempDir(), "agora.yaml")
	if err := os.WriteFile(path, []byte(file), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := f.Set(configFlag, path); err != nil {
		t.Fatal(err)
	}
	from, err = Fill(f, func(name string) (string, bool) { v, ok := env[name]; return v, ok })
	return e, from, path, err
}

func TestEveryFaultOfTheFileIsNamedWithItsLine(t *testing.T) {
	e, _, path, err := filled(t, "session:\n  grce: 5s\n  grace: soon\n  timeout: 3m\nlimits.rate: [1, 2]\nid:\n", nil)
	if err == nil {
		t.Fatal("the faults are not told")
	}
	for _, want := range []string{":2: session.grce is no setting", ":3: not a value of session.grace", ":5: not a value of limits.rate", ":6: id has no value"} {
		if n := strings.Count(err.Error(), path+want); n != 1 {
			t.Errorf("%q is told %d times in %q, want once", want, n, err)
		}
	}
	if got := fmt.Sprint(e.session.timeout); got != "3m0s" {
		t.Errorf("session.timeout = %s, want the 3m0s of the file: other settings have faults, and this one has none", got)
	}
}

func TestASettingThatIsWrittenTwiceIsAFaultInEverySpelling(t *testing.T) {
	for _, file := range []string{
		"session.timeout: 2m\nsession.timeout: 3m\n",
		"session.timeout: 2m\nsession: {timeout: 3m}\n",
		"session: {timeout: 2m}\nsession.timeout: 3m\n",
		"session: {timeout: 2m}\nsession: {timeout: 3m}\n",
	} {
		if _, _, path, err := filled(t, file, nil); err == nil || err.Error() != path+":2: session.timeout was set in line 1 already" {
			t.Errorf("%q: %v, want a fault of line 2 that names line 1", file, err)
		}
	}
}

func TestASettingAndTheGroupOfItsNameAreBothSet(t *testing.T) {
	env := map[string]string{"AGORA_MAILBOX": "off", "AGORA_MAILBOX_MAX_AGE": "5m"}
	for about, fill := range map[string]func() (*Edge, origins, string, error){
		"file":        func() (*Edge, origins, string, error) { return filled(t, "mailbox: off\nmailbox.max-age: 5m\n", nil) },
		"environment": func() (*Edge, origins, string, error) { return filled(t, "", env) },
	} {
		e, from, _, err := fill()
		if err != nil || bool(e.mailbox.on) || fmt.Sprint(e.mailbox.maxAge) != "5m0s" {
			t.Errorf("%s: mailbox %s, mailbox.max-age %v, %v; want off and 5m0s", about, &e.mailbox.on, e.mailbox.maxAge, err)
		}
		for _, name := range []string{"mailbox", "mailbox.max-age"} {
			if !strings.HasPrefix(from.Of(name), about+" ") {
				t.Errorf("%s comes from %q, want the %s", name, from.Of(name), about)
			}
		}
	}
}

func TestValuesOfTheFileStayAsTheyAreSpelt(t *testing.T) {
	e, _, _, err := filled(t, "id: 12_3\nredis.password: 2026-01-01\nserver.origins: [012, 1e3, true]\nnats.url: [nats://a:1, nats://b:2]\n", nil)
	if err != nil {
		t.Fatal(err)
	}
	if e.ID != "12_3" || e.Redis.password != "2026-01-01" {
		t.Errorf("id %q, password %q; want 12_3 and 2026-01-01", e.ID, string(e.Redis.password))
	}
	if want := []string{"012", "1e3", "true"}; !slices.Equal(e.Server.origins, want) {
		t.Errorf("server.origins = %q, want %q", e.Server.origins, want)
	}
	if got, want := e.NATS.URLs.String(), "nats://a:1,nats://b:2"; got != want {
		t.Errorf("nats.url = %s, want %s: every address of the list", got, want)
	}
}

func TestAValueThatIsTheDefaultToldAgainHasItsOrigin(t *testing.T) {
	_, from, path, err := filled(t, "session.heartbeat: 30s\nsession.grace: 9s\n", map[string]string{"AGORA_ID": "", "AGORA_SESSION_GRACE": "10s"})
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{
		"session.heartbeat": "file " + path, "id": "environment AGORA_ID", "session.grace": "environment AGORA_SESSION_GRACE", "session.timeout": "default",
	} {
		if got := from.Of(name); got != want {
			t.Errorf("%s comes from %q, want %q", name, got, want)
		}
	}
}
