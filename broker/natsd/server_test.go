package natsd

import (
	"context"
	"fmt"
	"net"
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

// What listens on a port may have taken it after it was found to be free.
func TestPortsThatOthersTakeAreChosenAnew(t *testing.T) {
	for name, at := range map[string]struct{ nodes, taken int }{
		"a node's":               {1, 0},
		"a node's, of a cluster": {3, 2},
		"a route's":              {3, 3},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			other, err := net.Listen("tcp", loopback+":0")
			if err != nil {
				t.Fatal(err)
			}
			defer other.Close()
			picks := 0
			s, err := embed(context.Background(), Config{Nodes: at.nodes}, func(n int) ([]int, error) {
				ports, err := freePorts(n)
				if picks++; picks == 1 && err == nil {
					ports[at.taken] = other.Addr().(*net.TCPAddr).Port
				}
				return ports, err
			})
			if err != nil {
				t.Fatal(err)
			}
			defer s.Shutdown()
			if picks != 2 {
				t.Errorf("ports were chosen %d times, want twice", picks)
			}
		})
	}
}

func TestPortsThatAreNeverFreeAreNamed(t *testing.T) {
	other, err := net.Listen("tcp", loopback+":0")
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	port := other.Addr().(*net.TCPAddr).Port
	_, err = embed(context.Background(), Config{}, func(int) ([]int, error) { return []int{port, port}, nil })
	if want := fmt.Sprintf("%d: bind: address already in use", port); err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("Embed = %v, want %q in it", err, want)
	}
}
