package main

import (
	"bufio"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/agora-relay/agora/internal/await"
	"github.com/agora-relay/agora/internal/origintest"
)

// listening returns the addresses of TCP at which a process listens, as the kernel knows them: a new listener is tried
// by the one who adds it.
func listening(t *testing.T, pid int) (all []netip.AddrPort) {
	t.Helper()
	own := map[string]bool{} // inodes of its sockets
	fds, err := filepath.Glob(fmt.Sprintf("/proc/%d/fd/*", pid))
	if err != nil {
		t.Fatal(err)
	}
	for _, fd := range fds {
		if to, err := os.Readlink(fd); err == nil { // else it has been closed
			own[to] = true
		}
	}
	for _, table := range []string{"tcp", "tcp6"} {
		b, err := os.ReadFile(fmt.Sprintf("/proc/%d/net/%s", pid, table))
		if err != nil {
			t.Fatal(err)
		}
		for _, line := range strings.Split(string(b), "\n")[1:] {
			if f := strings.Fields(line); len(f) > 9 && f[3] == "0A" && own["socket:["+f[9]+"]"] { // 0A is LISTEN
				all = append(all, socketAddress(t, f[1]))
			}
		}
	}
	return all
}

// socketAddress reads an address as the kernel writes it: words of 32 bits, each with its lowest byte first.
func socketAddress(t *testing.T, text string) netip.AddrPort {
	t.Helper()
	words, port, _ := strings.Cut(text, ":")
	b, err := hex.DecodeString(words)
	p, bad := hex.DecodeString(port)
	if err != nil || bad != nil {
		t.Fatalf("%s: %v, %v", text, err, bad)
	}
	for k := 0; k+4 <= len(b); k += 4 {
		slices.Reverse(b[k : k+4])
	}
	ip, _ := netip.AddrFromSlice(b)
	if ip = ip.Unmap(); ip.IsUnspecified() {
		ip = netip.MustParseAddr("127.0.0.1")
	}
	return netip.AddrPortFrom(ip, binary.BigEndian.Uint16(p))
}

// saysTo returns the first line that a listener says to the header of a request; empty where it says nothing and
// closes.
func saysTo(t *testing.T, at netip.AddrPort, target string, headers []string) string {
	t.Helper()
	c, err := net.Dial("tcp", at.String())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	c.SetDeadline(time.Now().Add(await.Long))
	text := "GET " + target + " HTTP/1.1\r\n"
	for k := 0; k < len(headers); k += 2 {
		text += headers[k] + ": " + strings.ReplaceAll(headers[k+1], "PORT", fmt.Sprint(at.Port())) + "\r\n"
	}
	if _, err := io.WriteString(c, text+"\r\n"); err != nil {
		return ""
	}
	line, _ := bufio.NewReader(c).ReadString('\n') // it closes, or resets, what it does not understand
	return strings.TrimSpace(line)
}

// triesPages tries every listener of a process with pages of others, and returns how many listeners that were.
func triesPages(t *testing.T, pid int, pages []origintest.Page) int {
	t.Helper()
	all := listening(t, pid)
	for _, at := range all {
		for _, p := range pages {
			host := p.Host
			if host == "" {
				host = at.String()
			}
			headers := append([]string{"Host", host}, p.Headers...)
			for _, target := range []string{"/", "/ws", "/a2a/events?agent=carl", "/metrics", "/p2p", "/nothing"} {
				for _, how := range [][]string{nil, origintest.Handshake} {
					said := saysTo(t, at, target, slices.Concat(headers, how))
					if strings.HasPrefix(said, "HTTP/") && !strings.Contains(said, " 403 ") && !(p.Twice && strings.Contains(said, " 400 ")) {
						t.Errorf("%v says %q to %s (%s, %d headers of a handshake), want 403", at, said, p.About, target, len(how)/2)
					}
				}
			}
		}
	}
	return len(all)
}

// launchProgram runs the program in a process of its own until the test ends, and waits until it says something.
func launchProgram(t *testing.T, says string, args ...string) (pid int) {
	t.Helper()
	cmd := exec.Command(os.Args[0], args...)
	out := &output{}
	cmd.Stdout, cmd.Stderr = out, out
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		cmd.Process.Kill()
		cmd.Wait()
	})
	await.True(t, "agora "+args[0]+" says "+says, func() bool { return strings.Contains(out.String(), says) })
	return cmd.Process.Pid
}

// Whatever a process of `agora dev`, and one of `agora sidecar`, listens at refuses pages of others before it says
// anything else, or speaks nothing that a browser does.
func TestNoListenerOfAProcessAnswersPagesOfOthers(t *testing.T) {
	t.Parallel()
	pid := launchProgram(t, "agora --help", append([]string{"dev", "--addr", "127.0.0.1:0", "--admin-addr", "127.0.0.1:0", "--grpc-addr", "127.0.0.1:0", "--p2p-addr", "127.0.0.1:0"}, calm...)...)
	if n := triesPages(t, pid, origintest.Foreign); n < 4 {
		t.Errorf("tried %d listeners, want HTTP, admin, gRPC and libp2p at least", n)
	}
	agent := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		io.WriteString(w, `{"name":"plain"}`)
	}))
	t.Cleanup(agent.Close)
	d := startDev(t)
	pid = launchProgram(t, "the agent is a member of the cluster", "sidecar", "--agent-url", agent.URL, "--url", d.public[0], "--p2p-addr", "/ip4/127.0.0.1/tcp/0", "--admin-addr", ":0")
	if n := triesPages(t, pid, slices.Concat(origintest.Foreign, origintest.Welcome)); n < 2 {
		t.Errorf("tried %d listeners of a sidecar, want libp2p and its API at least", n)
	}
}
