package config

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/spf13/pflag"
)

func parse(t *testing.T, env map[string]string, args ...string) (Settings, error) {
	t.Helper()
	var s Settings
	f := pflag.NewFlagSet("test", pflag.ContinueOnError)
	s.flags(f)
	if err := f.Parse(args); err != nil {
		return s, err
	}
	_, err := Fill(f, func(name string) (string, bool) { v, ok := env[name]; return v, ok })
	return s, errors.Join(append(s.faults(), err)...)
}

func TestFlagGoesBeforeEnvironmentBeforeDefault(t *testing.T) {
	s, err := parse(t, map[string]string{
		"AGORA_SESSION_GRACE": "5s", "AGORA_SESSION_TIMEOUT": "2m", "AGORA_SPACES_DELTA_THRESHOLD": "8KiB",
		"AGORA_MAILBOX": "off", "AGORA_SPACES_AUTO_CREATE": "false", "AGORA_LIMITS_RATE": "2.5", "AGORA_SERVER_ORIGINS": "https://a,https://b",
	}, "--session.grace", "7s")
	if err != nil {
		t.Fatal(err)
	}
	if s.session.grace != 7*time.Second || s.session.timeout != 2*time.Minute || s.session.heartbeat != 30*time.Second {
		t.Errorf("grace %v, timeout %v, heartbeat %v, want 7s, 2m, 30s", s.session.grace, s.session.timeout, s.session.heartbeat)
	}
	if s.spaces.deltaThreshold != 8<<10 || bool(s.mailbox.on) || s.spaces.autoCreate || s.limits.rate != 2.5 || len(s.Server.origins) != 2 {
		t.Errorf("settings = %+v", s)
	}
}

func TestBadSettingsAreRefusedByName(t *testing.T) {
	for _, c := range []struct {
		about, want string
		env         map[string]string
		args        []string
	}{
		{"environment", "AGORA_SESSION_GRACE", map[string]string{"AGORA_SESSION_GRACE": "soon"}, nil},
		{"no time at all", "session.grace", nil, []string{"--session.grace", "0s"}},
		{"time-out before heartbeat", "session.timeout", nil, []string{"--session.timeout", "1s"}},
		{"size", "limits.frame", nil, []string{"--limits.frame", "much"}},
		{"huge frame", "limits.frame", nil, []string{"--limits.frame", "8MiB"}},
		{"switch", "mailbox", nil, []string{"--mailbox", "yes"}},
		{"negative rate", "limits.rate", nil, []string{"--limits.rate", "-1"}},
		{"nobody", "limits.streams", nil, []string{"--limits.streams", "0"}},
	} {
		t.Run(c.about, func(t *testing.T) {
			if _, err := parse(t, c.env, c.args...); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("error = %v, want one about %s", err, c.want)
			}
		})
	}
}

func TestSizesAreReadAndWritten(t *testing.T) {
	for text, want := range map[string]size{"0": 0, "4096": 4096, "16KiB": 16 << 10, "1 MiB": 1 << 20, "2GiB": 2 << 30} {
		var s size
		if err := s.Set(text); err != nil || s != want {
			t.Errorf("Set(%q) = %d, %v, want %d", text, s, err, want)
		}
		var again size
		if err := again.Set(s.String()); err != nil || again != s {
			t.Errorf("%q is written as %q", text, s.String())
		}
	}
	for _, text := range []string{"", "-1", "1KB", "9999999999GiB"} {
		if err := new(size).Set(text); err == nil {
			t.Errorf("Set(%q) took it", text)
		}
	}
}

func TestDevIsNotOpenToOthersUnlessSaid(t *testing.T) {
	for _, c := range []struct {
		addr    string
		said    bool
		refused bool
	}{
		{"127.0.0.1:8080", false, false}, {"[::1]:8080", false, false}, {"localhost:8080", false, false},
		{":8080", false, true}, {"0.0.0.0:8080", false, true}, {"192.168.1.1:8080", false, true}, {"0.0.0.0:8080", true, false},
	} {
		var o Dev
		o.Flags(pflag.NewFlagSet("test", pflag.ContinueOnError))
		o.Addr = c.addr
		if err := o.Check(c.said); (err != nil) != c.refused {
			t.Errorf("%s, said %v: %v", c.addr, c.said, err)
		}
	}
}

func TestEdgeKUsesPortPlusK(t *testing.T) {
	for _, c := range []struct {
		addr string
		k    int
		want string
	}{{"127.0.0.1:8080", 2, "127.0.0.1:8082"}, {":0", 2, ":0"}, {"[::1]:9", 1, "[::1]:10"}} {
		if got, err := PlusPort(c.addr, c.k); err != nil || got != c.want {
			t.Errorf("plus(%s, %d) = %s, %v, want %s", c.addr, c.k, got, err, c.want)
		}
	}
	for _, bad := range []string{"here", "127.0.0.1:http", "127.0.0.1:70000"} {
		if _, err := PlusPort(bad, 0); err == nil {
			t.Errorf("plus(%s) took it", bad)
		}
	}
}
