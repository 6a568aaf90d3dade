package system

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
)

// Tools has the programs that systems are made of, found or built when the
// first system needs them.
type Tools struct {
	Module string // folder of the main module, whose versions are built
	Cache  string // folder for what is built and installed; made if missing
	Procs  int    // GOMAXPROCS of every server written in Go, of whatever system; 0 leaves it as it is

	mu   sync.Mutex // guards done
	done map[string]string
}

// once returns what get found under a name before, and calls it the first time.
func (t *Tools) once(name string, get func() (string, error)) (string, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if at := t.done[name]; at != "" {
		return at, nil
	}
	at, err := get()
	if err != nil {
		return "", fmt.Errorf("%s: %w", name, err)
	}
	if t.done == nil {
		t.done = map[string]string{}
	}
	t.done[name] = at
	return at, nil
}

// agora builds the command of the main module.
func (t *Tools) agora() (string, error) {
	return t.once("agora", func() (string, error) {
		if err := os.MkdirAll(t.Cache, 0o755); err != nil {
			return "", err
		}
		path := filepath.Join(t.Cache, "agora")
		_, err := output(t.Module, "go", "build", "-o", path, "./cmd/agora")
		return path, err
	})
}

// program builds a program of this module: internal/NAME.
func (t *Tools) program(name string) (string, error) {
	return t.once(name, func() (string, error) {
		cache, err := filepath.Abs(t.Cache)
		if err != nil {
			return "", err
		}
		if err := os.MkdirAll(cache, 0o755); err != nil {
			return "", err
		}
		path := filepath.Join(cache, name)
		_, err = output(filepath.Join(t.Module, "bench"), "go", "build", "-o", path, "./internal/"+name)
		return path, err
	})
}

// nats builds the server that the main module depends on.
func (t *Tools) nats() (string, error) {
	return t.once("nats-server", func() (string, error) { return output(t.Module, "go", "tool", "-n", "nats-server") })
}

func (t *Tools) redis() (string, error) {
	return t.once("redis-server", func() (string, error) {
		path, err := exec.LookPath("redis-server")
		if err != nil {
			err = errors.New("install redis-server")
		}
		return path, err
	})
}

func (t *Tools) nginx() (string, error) {
	return t.once("nginx", func() (string, error) {
		path, err := exec.LookPath("nginx")
		if err != nil {
			err = errors.New("install nginx")
		}
		return path, err
	})
}

// node returns the folder with Socket.IO's server and what it depends on, which npm installs there.
func (t *Tools) node() (string, error) {
	return t.once("Socket.IO", func() (string, error) {
		dir := filepath.Join(t.Cache, "socketio")
		if current, err := copyNode(dir); current || err != nil {
			return dir, err
		}
		_, err := output(dir, "npm", "ci", "--no-audit", "--no-fund", "--silent")
		return dir, err
	})
}

// output runs a command in a folder and returns what it says on stdout.
func output(dir string, argv ...string) (string, error) {
	cmd := exec.Command(argv[0], argv[1:]...)
	cmd.Dir = dir
	var said strings.Builder
	cmd.Stderr = &said
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("%s: %w\n%s", strings.Join(argv, " "), err, said.String())
	}
	return strings.TrimSpace(string(out)), nil
}
