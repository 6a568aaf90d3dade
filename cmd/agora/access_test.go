package main

import (
	"crypto/rand"
	"fmt"
	"strings"
	"testing"

	"github.com/gorilla/websocket"

	"github.com/agora-relay/agora/internal/await"
	"github.com/agora-relay/agora/internal/servers"
	"github.com/agora-relay/agora/wire"
)

// alone are the flags for one NATS server.
var alone = []string{"--auth", "none", "--nats.replicas", "1", "--nats.shards", "1"}

// serves launches an edge and has an agent say something to itself.
func serves(t *testing.T, args ...string) {
	t.Helper()
	e := launch(t, append(alone, args...)...).ready()
	id := "alice-" + rand.Text()[:8] // edges of other tests may be on the same Redis
	a := connect(t, e.public+"?agent_id="+id)
	a.hear("agent.registered")
	a.say(fmt.Sprintf(`{"type":"send","to":%q,"payload":1}`, id))
	a.hear("message")
	if status := e.ended(a); status != 0 {
		t.Errorf("agora edge ended with %d: %s", status, e.stderr)
	}
}

// refuses launches an edge that must end at once, with one sentence that has every text in it.
func refuses(t *testing.T, want []string, args ...string) {
	t.Helper()
	told := refusal(t, args...)
	if lacks := missing(told, want); lacks != "" {
		t.Errorf("it said %swant %q in it", told, lacks)
	}
}

// refusal launches an edge that must end by itself, and returns the one sentence that it says.
func refusal(t *testing.T, args ...string) string {
	t.Helper()
	e := launch(t, append(alone, args...)...)
	status := e.over()
	var told []string
	for line := range strings.Lines(e.stderr.String()) {
		if strings.HasPrefix(line, "agora: ") {
			told = append(told, line)
		}
	}
	if status != 1 || len(told) != 1 {
		t.Fatalf("agora edge ended with %d:\n%s", status, e.stderr)
	}
	return told[0]
}

// missing returns the first of the texts that a sentence lacks, if any.
func missing(told string, texts []string) string {
	for _, text := range texts {
		if !strings.Contains(told, text) {
			return text
		}
	}
	return ""
}

func TestAnEdgeTakesEveryWayIntoNATS(t *testing.T) {
	if testing.Short() {
		t.Skip("left to make test")
	}
	t.Parallel()
	certs, others := servers.NewCertificates(t), servers.NewCertificates(t)
	public, seed := servers.NATSKey(t)
	_, otherSeed := servers.NATSKey(t)
	operator, creds := servers.NATSOperator(t)
	_, otherCreds := servers.NATSOperator(t)
	secured := fmt.Sprintf("tls { cert_file: %q, key_file: %q", certs.ServerCert, certs.ServerKey)
	redis := servers.Redis(t).Addr()
	for about, c := range map[string]struct {
		more  string
		flags []string
		wrong []string // flags that are refused
		want  string
	}{
		"token":    {"authorization { token: t0ken }", []string{"--nats.token", "t0ken"}, []string{"--nats.token", "0ther"}, "refuses the credentials"},
		"user":     {"authorization { user: joe, password: s3cret }", []string{"--nats.user", "joe", "--nats.password", "s3cret"}, nil, "lets nobody in without credentials"},
		"accounts": {"accounts { A: { jetstream: enabled, users: [{user: joe, password: s3cret}] } }", []string{"--nats.user", "joe", "--nats.password", "s3cret"}, []string{"--nats.user", "joe", "--nats.password", "0ther"}, "refuses the credentials"},
		"nkey":     {fmt.Sprintf("authorization { users: [{nkey: %s}] }", public), []string{"--nats.nkey", seed}, []string{"--nats.nkey", otherSeed}, "refuses the credentials"},
		"creds":    {operator, []string{"--nats.creds", creds}, []string{"--nats.creds", otherCreds}, "refuses the credentials"},
		"tls":      {secured + "}", []string{"--nats.tls.ca", certs.CA}, nil, "nats.tls.ca"},
		"mutual tls": {fmt.Sprintf("%s, ca_file: %q, verify: true }", secured, certs.CA),
			[]string{"--nats.tls.ca", certs.CA, "--nats.tls.cert", certs.ClientCert, "--nats.tls.key", certs.ClientKey},
			[]string{"--nats.tls.ca", certs.CA, "--nats.tls.cert", others.ClientCert, "--nats.tls.key", others.ClientKey}, "nats.tls.cert"},
	} {
		t.Run(about, func(t *testing.T) {
			t.Parallel()
			s := servers.StartNATS(t, servers.NATSConfig{More: c.more})
			at := []string{"--redis.url", "redis://" + redis, "--nats.url", s.URL()}
			serves(t, append(c.flags, at...)...)
			refuses(t, []string{s.Addr(), c.want}, append(c.wrong, at...)...)
		})
	}
	t.Run("credentials in the address, behind a server that is down", func(t *testing.T) {
		t.Parallel()
		s := servers.StartNATS(t, servers.NATSConfig{More: "authorization { user: joe, password: s3cret }"})
		serves(t, "--redis.url", "redis://"+redis, "--nats.url", "nats://127.0.0.1:1,nats://joe:s3cret@"+s.Addr())
	})
	t.Run("TLS where there is none", func(t *testing.T) {
		t.Parallel()
		s := servers.StartNATS(t, servers.NATSConfig{})
		refuses(t, []string{s.Addr(), "does not speak TLS"}, "--redis.url", "redis://"+redis, "--nats.url", s.URL(), "--nats.tls.ca", certs.CA)
	})
}

func TestAnEdgeTakesEveryWayIntoRedis(t *testing.T) {
	if testing.Short() {
		t.Skip("left to make test")
	}
	t.Parallel()
	logs := natsOfEach(t, 9)
	certs, others := servers.NewCertificates(t), servers.NewCertificates(t)
	try := func(about string, good, bad []string, want string) {
		nats := logs[0]
		logs = logs[1:]
		t.Run(about, func(t *testing.T) {
			t.Parallel()
			serves(t, append(good, nats...)...)
			if bad != nil {
				refuses(t, []string{want}, append(bad, nats...)...)
			}
		})
	}
	tls := "rediss://" + servers.RedisGuarded(t, &certs)
	try("mutual TLS", []string{"--redis.url", tls, "--redis.tls.ca", certs.CA, "--redis.tls.cert", certs.ClientCert, "--redis.tls.key", certs.ClientKey},
		[]string{"--redis.url", tls, "--redis.tls.ca", others.CA}, "redis.tls.ca")
	try("a certificate of somebody else", []string{"--redis.url", tls, "--redis.tls.ca", certs.CA, "--redis.tls.cert", certs.ClientCert, "--redis.tls.key", certs.ClientKey},
		[]string{"--redis.url", tls, "--redis.tls.ca", certs.CA, "--redis.tls.cert", others.ClientCert, "--redis.tls.key", others.ClientKey}, "redis.tls.cert")

	closed := "redis://" + servers.RedisGuarded(t, nil, "--requirepass", "s3cret")
	try("password", []string{"--redis.url", closed, "--redis.password", "s3cret"}, []string{"--redis.url", closed}, "give redis.password")
	try("a wrong password", []string{"--redis.url", strings.Replace(closed, "://", "://:s3cret@", 1)},
		[]string{"--redis.url", closed, "--redis.password", "0ther"}, "correct redis.user and redis.password")

	acl := "redis://" + servers.RedisGuarded(t, nil, "--user", "default", "off", "--user", "joe", "on", ">s3cret", "~agora:*", "+@all",
		"--user", "reader", "on", ">s3cret", "~*", "+@read")
	try("ACL user", []string{"--redis.url", acl, "--redis.user", "joe", "--redis.password", "s3cret"},
		[]string{"--redis.url", acl, "--redis.user", "reader", "--redis.password", "s3cret"}, "rights of docs/security.md")

	master := servers.RedisGuarded(t, nil, "--requirepass", "m4ster")
	sentinel := "redis-sentinel://" + servers.GuardedSentinel(t, "s3ntinel", master, "m4ster") + "?master_name="
	try("Sentinel", []string{"--redis.url", sentinel + "main", "--redis.password", "m4ster", "--redis.sentinel.password", "s3ntinel"},
		[]string{"--redis.url", sentinel + "main", "--redis.password", "m4ster"}, "redis.sentinel.password")
	try("a master that no sentinel knows", []string{"--redis.url", sentinel + "main", "--redis.password", "m4ster", "--redis.sentinel.password", "s3ntinel"},
		[]string{"--redis.url", sentinel + "other", "--redis.password", "m4ster", "--redis.sentinel.password", "s3ntinel"}, "master_name")

	r, err := servers.RedisCluster(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(r.Stop)
	try("Cluster", []string{"--redis.url", "redis-cluster://" + r.Addr()}, nil, "")
	try("one server as Cluster", []string{"--redis.url", "redis-cluster://" + r.Addr()},
		[]string{"--redis.url", "redis-cluster://" + servers.Redis(t).Addr()}, "begin its address with redis://")
}

func TestAnEdgeFollowsSentinelToAnotherMaster(t *testing.T) {
	if testing.Short() {
		t.Skip("left to make test")
	}
	t.Parallel()
	s := servers.StartSentinel(t)
	e := launch(t, append(alone, "--nats.url", embedded(t), "--redis.url", s.URL())...).ready()
	s.KillMaster()
	await.True(t, "an agent gets in, so that the edge has found the new master", func() bool {
		c, _, err := websocket.DefaultDialer.Dial(e.public+"?agent_id=alice", nil)
		if err != nil {
			return false
		}
		defer c.Close()
		_, b, err := c.ReadMessage()
		var f wire.Frame
		return err == nil && wire.DecodeAnswer(b, &f) == nil && f.Type == "agent.registered"
	})
}

func TestNoSecretIsLogged(t *testing.T) {
	t.Parallel()
	s := servers.StartNATS(t, servers.NATSConfig{More: "authorization { user: joe, password: s3cret }"})
	redis := servers.RedisGuarded(t, nil, "--requirepass", "hus3")
	e := launch(t, append(alone, "--log.level", "debug", "--nats.url", "nats://joe:s3cret@"+s.Addr(), "--redis.url", "redis://:hus3@"+redis)...).ready()
	e.ended()
	wrong := launch(t, append(alone, "--log.level", "debug", "--nats.url", "nats://joe:0thers@"+s.Addr(), "--redis.url", "redis://:hus3@"+redis)...)
	wrong.over()
	for _, secret := range []string{"s3cret", "hus3", "0thers"} {
		if all := e.stdout.String() + e.stderr.String() + wrong.stderr.String(); strings.Contains(all, secret) {
			t.Errorf("%s is told:\n%s", secret, all)
		}
	}
}

func TestAnEdgeOutlivesCredentialsThatAreRefusedForAWhile(t *testing.T) {
	t.Parallel()
	right := servers.NATSConfig{More: "authorization { token: t0ken }"}
	s := servers.StartNATS(t, right)
	e := launch(t, append(alone, "--nats.url", s.URL(), "--nats.token", "t0ken", "--redis.url", "redis://"+servers.Redis(t).Addr())...).ready()
	s.Restart(t, servers.NATSConfig{More: "authorization { token: 0ther }"})
	await.True(t, "NATS has turned the edge away again and again", func() bool {
		return strings.Count(strings.ToLower(e.stderr.String()), "authorization violation") > 2
	})
	if status, body := fetch(t, e.admin+"/readyz"); status != 503 {
		t.Errorf("/readyz = %d %s, want 503", status, body)
	}
	s.Restart(t, right)
	await.True(t, "the edge is ready again", func() bool {
		status, _ := fetch(t, e.admin+"/readyz")
		return status == 200
	})
}
