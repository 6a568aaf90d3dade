package servers

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/agora-relay/agora/internal/await"
	"github.com/agora-relay/agora/internal/faultnet"
)

// NATSNode is a nats-server process of a cluster of three, with JetStream on files.
type NATSNode struct {
	proc                       Process
	name, addr, route, monitor string
	dir                        string                  // where JetStream keeps its files, as the node sees it
	lines                      map[int]*faultnet.Proxy // to the other nodes
}

// NATSNodes is a cluster of three nats-server processes. Its methods are for the test's goroutine.
type NATSNodes struct {
	Nodes []*NATSNode

	t testing.TB
}

// StartNATSNodes starts three nodes, which are to be waited for with Ready; the test's end kills them. With disk, each
// keeps its files on a disk of its own, of so many bytes.
func StartNATSNodes(t testing.TB, disk int) *NATSNodes {
	t.Helper()
	n := &NATSNodes{t: t}
	dir := t.TempDir()
	for k := range 3 {
		n.Nodes = append(n.Nodes, n.node(dir, k, disk))
	}
	t.Cleanup(n.kill)
	for k, node := range n.Nodes {
		if err := n.configure(k, node); err != nil {
			t.Fatal(err)
		}
		if err := node.proc.Start(); err != nil {
			t.Fatalf("start NATS node %d: %v", k, err)
		}
	}
	return n
}

// Under has its methods fail another test from now on, such as a subtest of the one that started it.
func (n *NATSNodes) Under(t testing.TB) { n.t = t }

// node describes node k.
func (n *NATSNodes) node(dir string, k, disk int) *NATSNode {
	n.t.Helper()
	node := &NATSNode{name: fmt.Sprintf("nats-%d", k), lines: map[int]*faultnet.Proxy{}}
	for _, at := range []*string{&node.addr, &node.route, &node.monitor} {
		var err error
		if *at, err = Addr(); err != nil {
			n.t.Fatal(err)
		}
	}
	node.dir = filepath.Join(dir, node.name)
	node.proc.Log = node.dir + ".log"
	server, err := natsServer()
	if err != nil {
		n.t.Fatalf("build nats-server: %v", err)
	}
	node.proc.Argv = []string{server, "-c", node.dir + ".conf"}
	if disk > 0 {
		node.proc.Argv = append(onDisk(node.dir, disk), node.proc.Argv...)
	}
	if err := os.Mkdir(node.dir, 0o700); err != nil {
		n.t.Fatal(err)
	}
	return node
}

// natsServer returns the path of a nats-server built from the module that the project embeds.
var natsServer = sync.OnceValues(func() (string, error) {
	out, err := exec.Command("go", "tool", "-n", "nats-server").Output()
	return strings.TrimSpace(string(out)), err
})

// onDisk begins a command line whose program sees a disk of so many bytes at dir. It
// needs no privileges: the program gets a view of the file system of its own.
func onDisk(dir string, bytes int) []string {
	mount := fmt.Sprintf(`mount -t tmpfs -o size=%d tmpfs "$0" && exec setpriv --pdeathsig KILL "$@"`, bytes)
	return []string{"unshare", "--user", "--map-root-user", "--mount", "sh", "-c", mount, dir}
}

func (n *NATSNodes) configure(k int, node *NATSNode) error {
	var routes []string
	for other, o := range n.Nodes {
		if other != k {
			node.lines[other] = faultnet.NewProxy(n.t, o.route)
			routes = append(routes, fmt.Sprintf("%q", "nats://"+node.lines[other].Addr()))
		}
	}
	// Not advertised: an edge is to know of no way to a node but the one it was given.
	conf := fmt.Sprintf(`server_name: %q
listen: %q
http: %q
max_payload: 8388608
jetstream { store_dir: %q, max_file_store: 16GB, max_memory_store: 256MB }
cluster { name: agora, listen: %q, no_advertise: true, routes: [%s] }
%s`, node.name, node.addr, node.monitor, node.dir, node.route, strings.Join(routes, ", "), natsUsers(n.t))
	return os.WriteFile(node.dir+".conf", []byte(conf), 0o600)
}

// Ready waits until every node runs, knows its peers and has caught up with them.
func (n *NATSNodes) Ready() {
	n.t.Helper()
	for _, node := range n.Nodes {
		if !await.Within(2*await.Long, node.healthy) {
			n.t.Fatalf("NATS %s is not ready:\n%s", node.name, node.proc.Tail(15))
		}
	}
}

// Addr returns the host and port where clients connect, the same after a restart.
func (n *NATSNode) Addr() string { return n.addr }

// healthy reports whether the node serves, and is up to date in all that it keeps.
func (n *NATSNode) healthy() bool { return AnswersOK("http://" + n.monitor + "/healthz") }

// AnswersOK reports whether a GET is answered with 200.
func AnswersOK(url string) bool { return getJSON(url, nil) == nil }

// silentAfter is how long an answer is waited for before it is asked for again.
const silentAfter = 5 * time.Second

// getJSON reads what a GET is answered with, unless v is nil.
func getJSON(url string, v any) error {
	c := http.Client{Timeout: silentAfter, Transport: &http.Transport{DisableKeepAlives: true}}
	resp, err := c.Get(url)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("%s: %s", url, resp.Status)
	}
	if v == nil {
		return nil
	}
	return json.NewDecoder(resp.Body).Decode(v)
}

func (n *NATSNodes) kill() {
	for _, node := range n.Nodes {
		node.proc.Kill()
	}
}

// Kill ends node k with SIGKILL.
func (n *NATSNodes) Kill(k int) { n.Nodes[k].proc.Kill() }

// Freeze stops node k with SIGSTOP, until Thaw or Heal: its connections stay, and nothing of it moves.
func (n *NATSNodes) Freeze(k int) { n.Nodes[k].proc.Signal(syscall.SIGSTOP) }

// Thaw lets node k go on.
func (n *NATSNodes) Thaw(k int) { n.Nodes[k].proc.Signal(syscall.SIGCONT) }

// Start starts node k again, with the files that it has, and does not wait for it.
func (n *NATSNodes) Start(k int) {
	n.t.Helper()
	if err := n.Nodes[k].proc.Start(); err != nil {
		n.t.Fatalf("start NATS node %d: %v", k, err)
	}
}

// Isolate cuts node k off from the other nodes, and from nobody else, until Rejoin.
func (n *NATSNodes) Isolate(k int) { n.lines(k, (*faultnet.Proxy).Cut) }

// Rejoin ends Isolate and waits until the nodes have found each other.
func (n *NATSNodes) Rejoin(k int) {
	n.t.Helper()
	n.lines(k, (*faultnet.Proxy).Mend)
	if !await.Within(await.Long, func() bool { return n.Nodes[k].peers() == len(n.Nodes)-1 }) {
		n.t.Fatalf("NATS node %d does not find the others again:\n%s", k, n.Nodes[k].proc.Tail(15))
	}
}

// Heal thaws the nodes, mends the lines between them, starts every node that has ended, and waits until all are ready.
func (n *NATSNodes) Heal() {
	n.t.Helper()
	for k := range n.Nodes {
		n.lines(k, (*faultnet.Proxy).Mend)
		n.Thaw(k)
		n.Start(k)
	}
	n.Ready()
}

// lines does something to every line between node k and the others.
func (n *NATSNodes) lines(k int, do func(*faultnet.Proxy)) {
	for other, o := range n.Nodes {
		if other != k {
			do(n.Nodes[k].lines[other])
			do(o.lines[k])
		}
	}
}

// peers returns how many other nodes it is connected to.
func (n *NATSNode) peers() int {
	var z struct {
		Routes []struct {
			Name string `json:"remote_name"`
		}
	}
	if getJSON("http://"+n.monitor+"/routez", &z) != nil {
		return 0
	}
	names := map[string]bool{}
	for _, r := range z.Routes {
		names[r.Name] = true
	}
	return len(names)
}

// FillDisk leaves no room on the disk of node k, which must have one of its own. A node that is
// started again has another disk, empty.
func (n *NATSNodes) FillDisk(k int) {
	n.t.Helper()
	f, err := os.Create(n.Nodes[k].filler())
	if err != nil {
		n.t.Fatalf("fill a disk: %v", err)
	}
	defer f.Close()
	b := make([]byte, 64<<10)
	for len(b) > 0 {
		if _, err := f.Write(b); err != nil { // down to the last bytes
			b = b[:len(b)/2]
		}
	}
}

// filler is the file that fills the node's disk, as seen from outside of its own file system.
func (n *NATSNode) filler() string {
	return fmt.Sprintf("/proc/%d/root%s/filler", n.proc.cmd.Process.Pid, n.dir)
}

// Leader returns which node leads a stream now; -1 when none does.
func (n *NATSNodes) Leader(stream string) int {
	n.t.Helper()
	var info struct{ Cluster struct{ Leader string } }
	if err := n.api("STREAM.INFO."+stream, &info); err != nil {
		return -1
	}
	for k, node := range n.Nodes {
		if node.name == info.Cluster.Leader {
			return k
		}
	}
	return -1
}

// Streams returns the names of the log's streams.
func (n *NATSNodes) Streams() []string {
	n.t.Helper()
	var names struct{ Streams []string }
	if err := n.ask("STREAM.NAMES", &names, func() bool { return true }); err != nil {
		n.t.Fatal(err)
	}
	return names.Streams
}

// StepDown has a stream elect another leader.
func (n *NATSNodes) StepDown(stream string) {
	n.t.Helper()
	var done struct {
		Success bool
		Error   json.RawMessage
	}
	if err := n.ask("STREAM.LEADER.STEPDOWN."+stream, &done, func() bool { return done.Success }); err != nil || !done.Success {
		n.t.Errorf("step down of %s: %v %s", stream, err, done.Error)
	}
}

// ask asks JetStream until the answer is good: a stream may have no leader at the moment.
func (n *NATSNodes) ask(subject string, answer any, good func() bool) (err error) {
	await.Within(await.Long, func() bool {
		err = n.api(subject, answer)
		return err == nil && good()
	})
	return err
}

// api asks JetStream through the first node that answers.
func (n *NATSNodes) api(subject string, answer any) error {
	var urls []string
	for _, node := range n.Nodes {
		urls = append(urls, "nats://"+node.addr)
	}
	nc, err := nats.Connect(strings.Join(urls, ","), nats.Timeout(silentAfter))
	if err != nil {
		return err
	}
	defer nc.Close()
	m, err := nc.Request("$JS.API."+subject, nil, silentAfter)
	if err != nil {
		return fmt.Errorf("%s: %w", subject, err)
	}
	return json.Unmarshal(m.Data, answer)
}
