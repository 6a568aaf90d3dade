package system

import (
	"bytes"
	"context"
	"embed"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/agora-relay/agora/bench/internal/proc"
	"github.com/agora-relay/agora/bench/internal/wire"
	"github.com/agora-relay/agora/internal/loadgen"
)

//go:embed node/server.js node/package.json node/package-lock.json
var node embed.FS

// startSocketIO starts two Node processes that share what they carry through Redis.
func startSocketIO(_ context.Context, r *Running) error {
	dir, err := r.tools.node()
	if err != nil {
		return err
	}
	redis, err := r.startRedis()
	if err != nil {
		return err
	}
	if r.addrs, err = proc.Addrs(2); err != nil {
		return err
	}
	for i, addr := range r.addrs {
		p, err := r.run(fmt.Sprintf("node-%d", i), "node", filepath.Join(dir, "server.js"), port(addr), port(redis))
		if err != nil {
			return err
		}
		if err := p.Await(patience, func() bool { return proc.Answers("http://" + addr + "/") }); err != nil {
			return err
		}
	}
	r.dial = func(ctx context.Context, _ loadgen.Role, addr, id string) (loadgen.Agent, error) {
		return wire.DialSocketIO(ctx, addr, id)
	}
	return nil
}

func port(addr string) string { return addr[strings.LastIndexByte(addr, ':')+1:] }

// copyNode writes the server's files into a folder. It reports whether npm has installed just what they ask for before.
func copyNode(dir string) (current bool, err error) {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return false, err
	}
	const lock = "package-lock.json"
	before, _ := os.ReadFile(filepath.Join(dir, lock))             // there may be none
	_, err = os.Stat(filepath.Join(dir, "node_modules", "."+lock)) // npm writes it when it is done
	for _, name := range []string{"server.js", "package.json", lock} {
		b, err := node.ReadFile("node/" + name)
		if err == nil {
			err = os.WriteFile(filepath.Join(dir, name), b, 0o644)
		}
		if err != nil {
			return false, err
		}
		current = name == lock && bytes.Equal(b, before)
	}
	return current && err == nil, nil
}
