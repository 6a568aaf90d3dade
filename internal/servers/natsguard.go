package servers

import (
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/nats-io/jwt/v2"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nkeys"

	"github.com/agora-relay/agora/internal/await"
)

// NATSConfig says what is special about a NATS server.
type NATSConfig struct {
	NoJetStream bool
	MaxPayload  int    // 8 MiB
	MaxStore    string // of files; 16GB
	More        string // of its configuration: who may do what, TLS
}

// NATSServer is a nats-server process that stands alone.
type NATSServer struct{ node *NATSNode }

// StartNATS starts a nats-server of its own configuration; the test's end kills it.
func StartNATS(t testing.TB, c NATSConfig) *NATSServer {
	t.Helper()
	n := &NATSNodes{t: t}
	s := &NATSServer{node: n.node(t.TempDir(), 0, 0)}
	t.Cleanup(s.node.proc.Kill)
	s.Restart(t, c)
	return s
}

// Restart kills it, where it runs, and starts it under another configuration, with the files that it has.
func (s *NATSServer) Restart(t testing.TB, c NATSConfig) {
	t.Helper()
	s.node.proc.Kill()
	conf := fmt.Sprintf("server_name: alone\nlisten: %q\nhttp: %q\nmax_payload: %d\n%s\n", s.node.addr, s.node.monitor, cmp.Or(c.MaxPayload, 8<<20), c.More)
	if !c.NoJetStream {
		conf += fmt.Sprintf("jetstream { store_dir: %q, max_file_store: %s, max_memory_store: 256MB }\n", s.node.dir, cmp.Or(c.MaxStore, "16GB"))
	}
	if err := os.WriteFile(s.node.dir+".conf", []byte(conf), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := s.node.proc.Start(); err != nil {
		t.Fatalf("start nats-server: %v", err)
	}
	if !await.Within(await.Long, s.node.healthy) {
		t.Fatalf("nats-server is not ready:\n%s", s.node.proc.Tail(15))
	}
}

// Addr returns its host and port.
func (s *NATSServer) Addr() string { return s.node.addr }

// URL returns its address.
func (s *NATSServer) URL() string { return "nats://" + s.node.addr }

// DeleteStreams deletes every stream that it has, as an operator would, and returns how many there were.
func (s *NATSServer) DeleteStreams(t testing.TB) int {
	t.Helper()
	nc, err := nats.Connect(s.URL(), nats.Timeout(await.Long))
	if err != nil {
		t.Fatal(err)
	}
	defer nc.Close()
	js, err := nc.JetStream(nats.MaxWait(await.Long))
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for name := range js.StreamNames() {
		if err := js.DeleteStream(name); err != nil {
			t.Fatal(err)
		}
		n++
	}
	return n
}

// NATSKey makes a user's NKey: its public half, for the server, and the file of its seed.
func NATSKey(t testing.TB) (public, file string) {
	t.Helper()
	key, public := newNKey(t, nkeys.CreateUser)
	seed, err := key.Seed()
	if err != nil {
		t.Fatal(err)
	}
	file = filepath.Join(t.TempDir(), "user.nk")
	if err := os.WriteFile(file, seed, 0o600); err != nil {
		t.Fatal(err)
	}
	return public, file
}

func newNKey(t testing.TB, make func() (nkeys.KeyPair, error)) (key nkeys.KeyPair, public string) {
	t.Helper()
	key, err := make()
	if err == nil {
		public, err = key.PublicKey()
	}
	if err != nil {
		t.Fatal(err)
	}
	return key, public
}

// NATSOperator makes an operator with an account of one user: the server's configuration, and the user's credentials
// file.
func NATSOperator(t testing.TB) (conf, creds string) {
	t.Helper()
	operatorKey, operator := newNKey(t, nkeys.CreateOperator)
	accountKey, account := newNKey(t, nkeys.CreateAccount)
	systemKey, system := newNKey(t, nkeys.CreateAccount)
	userKey, user := newNKey(t, nkeys.CreateUser)
	_ = systemKey // nobody uses it, but it must be there

	o := jwt.NewOperatorClaims(operator)
	o.SystemAccount = system
	a := jwt.NewAccountClaims(account)
	a.Limits.JetStreamLimits = jwt.JetStreamLimits{MemoryStorage: -1, DiskStorage: -1, Streams: -1, Consumer: -1}
	sign := func(c jwt.Claims, by nkeys.KeyPair) string {
		token, err := c.Encode(by)
		if err != nil {
			t.Fatal(err)
		}
		return token
	}
	seed, err := userKey.Seed()
	if err != nil {
		t.Fatal(err)
	}
	text, err := jwt.FormatUserConfig(sign(jwt.NewUserClaims(user), accountKey), seed)
	if err != nil {
		t.Fatal(err)
	}
	creds = filepath.Join(t.TempDir(), "user.creds")
	if err := os.WriteFile(creds, text, 0o600); err != nil {
		t.Fatal(err)
	}
	return strings.Join([]string{
		"operator: " + sign(o, operatorKey), "system_account: " + system, "resolver: MEMORY",
		fmt.Sprintf("resolver_preload: { %s: %s, %s: %s }", account, sign(a, operatorKey), system, sign(jwt.NewAccountClaims(system), operatorKey)),
	}, "\n"), creds
}
