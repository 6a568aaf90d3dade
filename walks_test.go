//go:build chaos

package agora_test

import (
	"bufio"
	"cmp"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/gorilla/websocket"
)

// walked is how many messages walk, one after the other: what runs as often runs for each.
const walked = 1000

// TestTheWalksOfTheArchitectureAreAllThatRuns holds that the walks of ARCHITECTURE.md are whole: they name each file of
// which something runs for each message, that of an event beside that of a message, and none of which nothing does. The
// counters of a cluster that is built with them say what runs. A file stands in backticks; one without a directory is
// in the one that was named last. It tells how many functions, files and packages a message walks through.
func TestTheWalksOfTheArchitectureAreAllThatRuns(t *testing.T) {
	program := filepath.Join(t.TempDir(), "agora")
	build := exec.CommandContext(t.Context(), "go", "build", "-cover", "-covermode=atomic", "-coverpkg=./...", "-o", program, "./cmd/agora")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	idle := walk(t, program, func(alice, bob *websocket.Conn) {})
	sends := filesOf(t, "The walk of a `send`")
	for title, says := range map[string]func(alice, bob *websocket.Conn){
		"The walk of a `send`": func(alice, bob *websocket.Conn) {
			for n := range walked {
				say(t, alice, fmt.Sprintf(`{"type":"send","to":"bob","payload":{"text":"message %d"}}`, n))
				hear(t, bob, "message")
			}
		},
		"The walk of a `space.publish`": func(alice, bob *websocket.Conn) {
			for _, c := range []*websocket.Conn{alice, bob} {
				say(t, c, `{"type":"space.join","id":"j","space":"lobby"}`)
				hear(t, c, "space.joined")
			}
			for n := range walked {
				say(t, alice, fmt.Sprintf(`{"type":"space.publish","space":"lobby","data":{"text":"event %d"}}`, n))
				hear(t, alice, "space.event")
				hear(t, bob, "space.event")
			}
		},
	} {
		named, ran := filesOf(t, title), walk(t, program, says)
		for file, blocks := range idle { // what runs at the start alone
			for line, n := range blocks {
				if n > walked/2 {
					delete(ran[file], line)
				}
			}
		}
		functions, files, packages := 0, 0, map[string]bool{}
		for _, file := range slices.Sorted(maps.Keys(ran)) {
			most := slices.Max(append(slices.Collect(maps.Values(ran[file])), 0))
			if most >= walked && !named[file] && !sends[file] {
				t.Errorf("%s: %s is not named, and runs for each message", title, file)
			}
			if most < walked/2 && named[file] {
				t.Errorf("%s: %s is named, and runs for %d of %d messages", title, file, most, walked)
			}
			if hot := functionsOf(t, file, ran[file]); len(hot) > 0 {
				functions += len(hot)
				files++
				packages[path.Dir(file)] = true
				t.Logf("%s: %s", file, strings.Join(hot, " "))
			}
		}
		for file := range named {
			if ran[file] == nil {
				t.Errorf("%s: %s is named, and does not run", title, file)
			}
		}
		t.Logf("%s: %d functions, %d files, %d packages", title, functions, files, len(packages))
	}
}

// walk starts a cluster of two edges, has two agents at different ones talk, and returns how often each block of each
// file of the product ran, by the line that it begins in.
func walk(t *testing.T, program string, talk func(alice, bob *websocket.Conn)) map[string]map[int]int {
	t.Helper()
	counters := t.TempDir()
	dev := exec.Command(program, "dev", "--edges", "2", "--addr", "127.0.0.1:0", "--admin-addr", "127.0.0.1:0",
		"--grpc-addr", "none", "--p2p-addr", "none", "--data", t.TempDir())
	dev.Env = slices.DeleteFunc(os.Environ(), func(v string) bool { return strings.HasPrefix(v, "AGORA_") })
	dev.Env = append(dev.Env, "GOCOVERDIR="+counters)
	out, err := dev.StdoutPipe()
	if err == nil {
		err = dev.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	var conns []*websocket.Conn
	for lines := bufio.NewScanner(out); len(conns) < 2 && lines.Scan(); {
		if _, rest, ok := strings.Cut(lines.Text(), "ws://"); ok {
			at, _, _ := strings.Cut(rest, "/ws")
			c, _, err := websocket.DefaultDialer.DialContext(t.Context(), "ws://"+at+"/ws?agent_id="+[]string{"alice", "bob"}[len(conns)], nil)
			if err != nil {
				t.Fatal(err)
			}
			defer c.Close()
			hear(t, c, "agent.registered")
			conns = append(conns, c)
		}
	}
	if len(conns) < 2 {
		t.Fatal("the cluster did not start")
	}
	talk(conns[0], conns[1])
	_ = dev.Process.Signal(syscall.SIGTERM)
	if err := dev.Wait(); err != nil {
		t.Fatal(err)
	}
	return blocksOf(t, counters)
}

func say(t *testing.T, c *websocket.Conn, frame string) {
	t.Helper()
	if err := c.WriteMessage(websocket.TextMessage, []byte(frame)); err != nil {
		t.Fatal(err)
	}
}

// hear reads frames up to one of a type.
func hear(t *testing.T, c *websocket.Conn, kind string) {
	t.Helper()
	for {
		var f struct{ Type, Message string }
		if err := c.ReadJSON(&f); err != nil || f.Type == "error" {
			t.Fatalf("waiting for %s: %v %s", kind, err, f.Message)
		}
		if f.Type == kind {
			return
		}
	}
}

var blockLine = regexp.MustCompile(`^([^:]+):(\d+)\.\d+,\d+\.\d+ \d+ (\d+)$`)

// notWalked begins the files that are no part of what a message walks through: the program around the core, and tests'.
var notWalked = []string{
	"cmd/", "client", "examples/", "internal/agoratest", "internal/await", "internal/faultnet", "internal/loadgen", "internal/party", "internal/servers", "internal/sim",
}

// blocksOf reads the counters that a program has left.
func blocksOf(t *testing.T, dir string) map[string]map[int]int {
	t.Helper()
	text := filepath.Join(t.TempDir(), "counters")
	if out, err := exec.CommandContext(t.Context(), "go", "tool", "covdata", "textfmt", "-i", dir, "-o", text).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	all := map[string]map[int]int{}
	for line := range strings.Lines(page(t, text)) {
		m := blockLine.FindStringSubmatch(strings.TrimSuffix(line, "\n"))
		if m == nil {
			continue
		}
		file := strings.TrimPrefix(m[1], module+"/")
		if slices.ContainsFunc(notWalked, func(p string) bool { return strings.HasPrefix(file, p) }) {
			continue
		}
		if all[file] == nil {
			all[file] = map[int]int{}
		}
		at, _ := strconv.Atoi(m[2])
		n, _ := strconv.Atoi(m[3])
		all[file][at] = max(all[file][at], n)
	}
	return all
}

var functionName = regexp.MustCompile(`^func (?:\([^)]*\) )?(\w+)`)

// functionsOf returns the functions of a file of which a block ran for each message.
func functionsOf(t *testing.T, file string, blocks map[int]int) (names []string) {
	t.Helper()
	last, lines := "", strings.Split(page(t, file), "\n")
	at := map[int]string{}
	for k, line := range lines {
		if m := functionName.FindStringSubmatch(line); m != nil {
			last = m[1]
		}
		at[k+1] = last
	}
	for line, n := range blocks {
		if n >= walked*98/100 && !slices.Contains(names, at[line]) {
			names = append(names, at[line])
		}
	}
	slices.SortFunc(names, cmp.Compare[string])
	return names
}

var namedFile = regexp.MustCompile("`([\\w./-]+/)?(\\w+\\.go)`")

// filesOf returns the files that a walk names.
func filesOf(t *testing.T, title string) map[string]bool {
	t.Helper()
	_, section, found := strings.Cut(page(t, "ARCHITECTURE.md"), "\n## "+title+"\n")
	if !found {
		t.Fatalf("ARCHITECTURE.md has no section %q", title)
	}
	section, _, _ = strings.Cut(section, "\n## ")
	named, dir := map[string]bool{}, ""
	for _, m := range namedFile.FindAllStringSubmatch(section, -1) {
		dir = cmp.Or(m[1], dir)
		if m[1] == "./" {
			dir = ""
		}
		if !strings.HasSuffix(m[2], "_test.go") {
			named[path.Join(dir, m[2])] = true
		}
	}
	return named
}
