package main

import (
	"github.com/agora-relay/agora/cmd/agora/config"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// write puts text into a file of the test's own.
func write(t *testing.T, name, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// command runs agora to its end.
func command(t *testing.T, args ...string) (status int, stdout, stderr string) {
	t.Helper()
	var out, errs output
	status = run(t.Context(), args, strings.NewReader(""), &out, &errs)
	return status, out.String(), errs.String()
}

const goodFile = `
# an edge
auth: none
session.grace: 5s
session:
  timeout: 2m
mailbox: off
mailbox.max-age: 5m
server.origins: [https://a.example, https://b.example]
nats:
  url: [nats://a:4222, "nats://joe:pa5s@b:4222"]
  token: 0123
redis:
  url: redis-sentinel://s:26379?master_name=main&password=hus3&addr=s2:26379
  password: s3cret
  sentinel.password: "s3ntinel"
data: /var/lib/agora
`

func TestShowTellsEverySettingItsValueAndWhereThatComesFrom(t *testing.T) {
	path := write(t, "agora.yaml", strings.Replace(goodFile, "data: /var/lib/agora\n", "", 1))
	t.Setenv("AGORA_SESSION_TIMEOUT", "3m")
	t.Setenv("AGORA_LIMITS_FRAME", "64KiB")
	status, out, stderr := command(t, "config", "show", "--config", path, "--limits.frame", "32KiB")
	if status != 0 {
		t.Fatalf("ended with %d: %s", status, stderr)
	}
	lines := map[string]string{}
	for line := range strings.Lines(out) {
		name, rest, _ := strings.Cut(line, " ")
		lines[name] = strings.Join(strings.Fields(rest), " ")
	}
	for name, want := range map[string]string{
		"session.grace":           "5s file " + path,
		"session.timeout":         "3m0s environment AGORA_SESSION_TIMEOUT",
		"session.heartbeat":       "30s default",
		"limits.frame":            "32KiB flag",
		"mailbox":                 "off file " + path,
		"mailbox.max-age":         "5m0s file " + path,
		"server.origins":          "[https://a.example,https://b.example] file " + path,
		"nats.url":                "nats://a:4222,nats://***@b:4222 file " + path,
		"nats.token":              "*** file " + path,
		"nats.password":           "default",
		"redis.url":               "redis-sentinel://s:26379?master_name=main&password=***&addr=s2:26379 file " + path,
		"redis.password":          "*** file " + path,
		"redis.sentinel.password": "*** file " + path,
		"nats.replicas":           "3 default",
	} {
		if lines[name] != want {
			t.Errorf("%s = %q, want %q", name, lines[name], want)
		}
	}
	for _, name := range config.SettingNames(config.EdgeFlags()) {
		if _, ok := lines[name]; !ok {
			t.Errorf("%s is not shown", name)
		}
	}
	for _, secret := range []string{"0123", "s3cret", "s3ntinel", "pa5s", "hus3", "joe"} {
		if strings.Contains(out+stderr, secret) {
			t.Errorf("%s is shown:\n%s", secret, out)
		}
	}
}

func TestCheckTellsEveryFaultInASentence(t *testing.T) {
	t.Setenv("AGORA_LIMITS_DEPTH", "deep")
	path := write(t, "agora.yaml", `auth: file:/nowhere/tokens
session:
  grce: 5s
  timeout: 1s
drain.timeout: soon
session.timeout: 2s
nats:
  url: nats://:4222
  ulr: x
  token: a
  creds: /nowhere/creds
  tls: {ca: /nowhere/ca.pem}
limits.rate: [1, 2]
mailbx: off
limits: 7
completely-other: 1
edges: 3
redis.url: http://here
`)
	status, _, stderr := command(t, "config", "check", "--config", path)
	if status != 1 {
		t.Errorf("ended with %d, want 1", status)
	}
	for _, want := range []string{
		path + ":3: session.grce is no setting: do you mean session.grace?",
		path + ":6: session.timeout was set in line 4 already",
		path + ":5: not a value of drain.timeout: ",
		path + ":9: nats.ulr is no setting: do you mean nats.url?",
		path + ":13: not a value of limits.rate: want one value, not a list",
		path + ":14: mailbx is no setting: do you mean mailbox?",
		path + ":15: limits is a group of settings",
		path + ":16: completely-other is no setting; `agora config show`",
		path + ":17: edges is a setting of `agora dev` alone",
		"AGORA_LIMITS_DEPTH: not a value of limits.depth: ",
		"nats.url: address 1 can't be read",
		"only one of nats.creds, nats.nkey, nats.token and nats.user can be given",
		"session.timeout can't be shorter than session.heartbeat",
		"redis.url must begin with redis://",
		"nats.creds: open /nowhere/creds: no such file",
		"nats.tls.ca: open /nowhere/ca.pem: no such file",
		"auth: open /nowhere/tokens: no such file",
	} {
		if n := strings.Count(stderr, "agora: "+want); n != 1 {
			t.Errorf("%q is told %d times, want once", want, n)
		}
	}
	if t.Failed() {
		t.Log(stderr)
	}
}

func TestCheckEndsWithWhatItFound(t *testing.T) {
	for _, c := range []struct {
		about, file string
		args        []string
		status      int
	}{
		{"all is well", "auth: none\n", nil, 0},
		{"an empty file", "", []string{"--auth", "none"}, 0},
		{"who may connect is not said", "id: a\n", nil, 1},
		{"no YAML", "auth: [", nil, 1},
		{"not settings", "- a\n", []string{"--auth", "none"}, 1},
		{"two documents", "auth: none\n---\nid: a\n", nil, 1},
		{"no value", "auth: none\nid:\n", nil, 1},
		{"no such flag", "auth: none\n", []string{"--nats.ulr", "x"}, 2},
		{"no value of a flag", "auth: none\n", []string{"--nats.shards", "x"}, 2},
		{"an argument", "auth: none\n", []string{"x"}, 2},
	} {
		t.Run(c.about, func(t *testing.T) {
			args := append([]string{"config", "check", "--config", write(t, "agora.yaml", c.file)}, c.args...)
			if status, out, stderr := command(t, args...); status != c.status || (stderr == "") != (status == 0) {
				t.Errorf("ended with %d, want %d: %s%s", status, c.status, out, stderr)
			}
		})
	}
	if status, _, stderr := command(t, "config", "check", "--config", "/nowhere/agora.yaml"); status != 1 || !strings.Contains(stderr, "/nowhere/agora.yaml") {
		t.Errorf("a file that is not there: %d %s", status, stderr)
	}
}

func TestDevTakesTheFileOfAnEdge(t *testing.T) {
	t.Parallel()
	path := write(t, "agora.yaml", strings.Replace(goodFile, "data: /var/lib/agora", "edges: 2\nedge.lease: 9s", 1))
	d := startDev(t, "--config", path)
	if len(d.public) != 2 {
		t.Errorf("%d edges, want the 2 of the file", len(d.public))
	}
	if status, _, stderr := command(t, "dev", "--config", write(t, "agora.yaml", "edgs: 2\n")); status != 2 || !strings.Contains(stderr, "do you mean edges?") {
		t.Errorf("ended with %d: %s", status, stderr)
	}
}
