package natsd

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestAnEmbeddedServerOfWhichNothingIsSaidTakesItsFolderWithIt(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	s, err := Embed(context.Background(), Config{})
	if err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(s.URL(), "nats://"); n != 1 {
		t.Errorf("%d servers at %s, want 1", n, s.URL())
	}
	dir := s.cfg.Dir
	if _, err := os.Stat(dir); err != nil {
		t.Errorf("its folder: %v", err)
	}
	s.Shutdown()
	if _, err := os.Stat(dir); !os.IsNotExist(err) {
		t.Errorf("its folder once it has ended: %v, want that it is gone", err)
	}
}

func TestAnEmbeddedClusterThatCannotBeSaysWhy(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for want, cfg := range map[string]Config{
		"choose 1 or 3":                {Nodes: 2},
		"folder for the embedded NATS": {Dir: file},
	} {
		if _, err := Embed(context.Background(), cfg); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("Embed(%+v) = %v, want %q in it", cfg, err, want)
		}
	}
}
