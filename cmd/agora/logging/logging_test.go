package logging

import (
	"bytes"
	"log/slog"
	"regexp"
	"strings"
	"testing"
	"time"
)

func TestDurationsAreInTheUnitThatTheirKeyNames(t *testing.T) {
	for _, format := range []string{Text, JSON} {
		var out bytes.Buffer
		log, err := newLog(&out, format, slog.LevelInfo)
		if err != nil {
			t.Fatal(err)
		}
		log.With("every", time.Minute).Info("x", "took", 1975*time.Millisecond, slog.Group("of", "a", 1500*time.Microsecond), "n", 3)
		want := []string{"every_ms=60000", "took_ms=1975", "of.a_ms=1.5", "n=3"}
		if format == JSON {
			want = []string{`"every_ms":60000`, `"took_ms":1975`, `"of":{"a_ms":1.5}`, `"n":3`}
		}
		for _, w := range want {
			if !strings.Contains(out.String(), w) {
				t.Errorf("%s: %s has no %s", format, &out, w)
			}
		}
	}
}

func TestAShortLogHasALineForAPerson(t *testing.T) {
	var out bytes.Buffer
	log, err := newLog(&out, Short, slog.LevelInfo)
	if err != nil {
		t.Fatal(err)
	}
	log = log.With("edge", "edge-1")
	log.Debug("not this")
	log.Info("session ended", "agent", "bob", "tenant", "default", "principal", "", "session", "EVDZ3QMB727FO4JW", "conn", "ws-1",
		"reason", "goodbye", "close", 1000, "frames_in", 1, "bytes_in", 99, "lasted", 1975*time.Millisecond)
	log.Warn("nats", "err", "two\nlines\x1b[31m")
	want := regexp.MustCompile(`^\d\d:\d\d:\d\d session ended  edge=edge-1 agent=bob reason=goodbye lasted=1.975s
\d\d:\d\d:\d\d WARN nats  edge=edge-1 err="two\\nlines\\x1b\[31m"
$`)
	if !want.MatchString(out.String()) {
		t.Errorf("it says\n%s", &out)
	}
}
