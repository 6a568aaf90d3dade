package config

import (
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"regexp"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"github.com/agora-relay/agora/broker"
	"github.com/agora-relay/agora/edge/dial"
	"github.com/agora-relay/agora/presence"
)

// Edge are the settings of `agora edge`.
type Edge struct {
	Settings
	ID, Addr, AdminAddr      string
	Auth                     authSettings
	StartTimeout, lease      time.Duration
	DrainDelay, DrainTimeout time.Duration
	PodCost                  bool
	NATS                     natsSettings
	Redis                    redisSettings
}

// natsSettings say where the log is, and how to get in.
type natsSettings struct {
	URLs             addresses
	creds, nkey      string
	token            secret
	user             string
	password         secret
	ca, cert, key    string
	replicas, shards int
	storage          string
}

// redisSettings say where presence is, and how to get in.
type redisSettings struct {
	URL                address
	user               string
	password, sentinel secret
	ca, cert, key      string
}

// Flags defines the flags of o, defaults included.
func (o *Edge) Flags(f *pflag.FlagSet) {
	FileFlag(f)
	f.StringVar(&o.ID, "id", "", "id of the edge, which no other running edge may have; random if empty")
	f.StringVar(&o.Addr, "addr", ":8080", "where agents connect; port 0 is any free one")
	f.StringVar(&o.AdminAddr, "admin-addr", DefaultAdmin, "where /healthz, /readyz, /metrics and what operators ask are")
	o.Auth.flags(f, "", "; must be given")
	f.DurationVar(&o.StartTimeout, "start.timeout", time.Minute, "how long NATS and Redis may take to be there at the start")
	f.DurationVar(&o.lease, "edge.lease", 10*time.Second, "how long an edge that is silent keeps its agents; the same at every edge")
	f.DurationVar(&o.DrainDelay, "drain.delay", 0, "between not being ready and the first agent told to reconnect")
	f.DurationVar(&o.DrainTimeout, "drain.timeout", 25*time.Second, "how long ending may take at most, after drain.delay: handing agents over, and closing what does not answer")
	f.BoolVar(&o.PodCost, "kubernetes.pod-deletion-cost", false, "tell Kubernetes how many agents the pod has, so that a smaller ReplicaSet loses the pod with fewest; its account must have the right to patch pods")
	o.NATS.flags(f)
	o.Redis.flags(f)
	o.dial.flags(f, dial.Inside)
	o.IAT.resolveFlag(f, false)
	o.Settings.flags(f)
}

func (n *natsSettings) flags(f *pflag.FlagSet) {
	n.URLs = "nats://127.0.0.1:4222"
	f.Var(&n.URLs, "nats.url", "addresses of NATS servers, separated by commas; tls://HOST:PORT for TLS")
	f.StringVar(&n.creds, "nats.creds", "", "file of a NATS user's credentials (token and key)")
	f.StringVar(&n.nkey, "nats.nkey", "", "file of a NATS user's NKey seed")
	f.Var(&n.token, "nats.token", "token that NATS asks for; better given by environment or file")
	f.StringVar(&n.user, "nats.user", "", "NATS user")
	f.Var(&n.password, "nats.password", "password of the NATS user; better given by environment or file")
	f.StringVar(&n.ca, "nats.tls.ca", "", "file of the CA that signed the certificates of NATS, for TLS; the system's CAs if empty")
	f.StringVar(&n.cert, "nats.tls.cert", "", "file of this edge's certificate for NATS")
	f.StringVar(&n.key, "nats.tls.key", "", "file of the key of nats.tls.cert")
	f.IntVar(&n.replicas, "nats.replicas", 3, "servers that keep each message: 1, 3 or 5")
	f.IntVar(&n.shards, "nats.shards", 4, "streams for agents, and as many for spaces; can't be changed once they are there")
	f.StringVar(&n.storage, "nats.storage", "file", "where NATS keeps messages: file or memory")
}

func (r *redisSettings) flags(f *pflag.FlagSet) {
	r.URL = "redis://127.0.0.1:6379"
	f.Var(&r.URL, "redis.url",
		"address of Redis: redis://HOST:PORT, redis-cluster://HOST:PORT?addr=HOST:PORT or redis-sentinel://HOST:PORT?addr=HOST:PORT&master_name=NAME; rediss… for TLS")
	f.StringVar(&r.user, "redis.user", "", "Redis user; the default one if empty")
	f.Var(&r.password, "redis.password", "password of the Redis user; better given by environment or file")
	f.Var(&r.sentinel, "redis.sentinel.password", "password of the sentinels; better given by environment or file")
	f.StringVar(&r.ca, "redis.tls.ca", "", "file of the CA that signed the certificates of Redis, for rediss…; the system's CAs if empty")
	f.StringVar(&r.cert, "redis.tls.cert", "", "file of this edge's certificate for Redis")
	f.StringVar(&r.key, "redis.tls.key", "", "file of the key of redis.tls.cert")
}

// Check returns everything about the settings that makes no sense, alone or
// together; nil when all is well. It reads no file.
func (o *Edge) Check() error {
	all := []error{
		unless(o.Auth.choice != "", "auth must be given: --auth file:PATH (tokens made by `agora token`), jwt or mtls, or --auth none if everybody may be any agent"),
		unless(edgeID.MatchString(o.ID), "id can't be more than 64 letters, digits, dots, dashes and underscores"),
		unless(o.StartTimeout > 0, "start.timeout must be more than nothing"),
		unless(o.lease >= time.Second, "edge.lease must be at least 1s"),
		unless(o.DrainDelay >= 0, "drain.delay can't be negative"),
		unless(o.DrainTimeout > 0, "drain.timeout must be more than nothing"),
	}
	for name, addr := range map[string]string{"addr": o.Addr, "admin-addr": o.AdminAddr} {
		if _, err := PlusPort(addr, 0); err != nil {
			all = append(all, fmt.Errorf("%s: want HOST:PORT or :PORT, not %q", name, addr))
		}
	}
	all = append(all, o.Auth.faults()...)
	all = append(all, unless(!o.Auth.has("mtls") || o.Server.TLS.ClientCA != "", "auth mtls needs tls.cert, tls.key and tls.client-ca"))
	all = append(all, o.NATS.faults()...)
	all = append(all, o.Redis.faults()...)
	return errors.Join(append(all, o.Settings.faults()...)...)
}

var edgeID = regexp.MustCompile(`^[A-Za-z0-9._-]{0,64}$`)

func (n *natsSettings) faults() (all []error) {
	for k, u := range strings.Split(string(n.URLs), ",") {
		if !isAddress(u) { // not quoted: there may be a password in it
			all = append(all, fmt.Errorf("nats.url: address %d can't be read: want nats://HOST:PORT", k+1))
		}
	}
	ways := 0
	for _, given := range []string{n.creds, n.nkey, string(n.token), n.user} {
		if given != "" {
			ways++
		}
	}
	return append(all,
		unless(ways <= 1, "only one of nats.creds, nats.nkey, nats.token and nats.user can be given"),
		unless(n.password == "" || n.user != "", "nats.password needs nats.user"),
		unless((n.cert == "") == (n.key == ""), "nats.tls.cert and nats.tls.key go together"),
		unless(n.replicas == 1 || n.replicas == 3 || n.replicas == 5, "nats.replicas must be 1, 3 or 5"),
		unless(n.shards >= 1 && n.shards <= 1024, "nats.shards must be 1 to 1024"),
		unless(n.storage == "file" || n.storage == "memory", "nats.storage is file or memory"),
	)
}

// isAddress reports whether text is HOST, HOST:PORT or a URL of one.
func isAddress(text string) bool {
	if !strings.Contains(text, "://") {
		text = "nats://" + text
	}
	u, err := url.Parse(text)
	return err == nil && u.Hostname() != ""
}

func (r *redisSettings) faults() []error {
	all := []error{
		unless((r.cert == "") == (r.key == ""), "redis.tls.cert and redis.tls.key go together"),
		unless(r.sentinel == "" || strings.Contains(string(r.URL), "-sentinel://"), "redis.sentinel.password needs a redis.url that begins with redis-sentinel:// or rediss-sentinel://"),
		unless(r.ca == "" && r.cert == "" && r.key == "" || strings.HasPrefix(string(r.URL), "rediss"), "redis.tls.… needs a redis.url that begins with rediss"),
	}
	a := r.access()
	a.CA, a.Cert, a.Key = "", "", "" // files are looked at by checkFiles
	c, err := a.Dial(string(r.URL))
	if err == nil {
		err = c.Close() // it has not connected
	}
	return append(all, err)
}

// checkFiles returns what is wrong with the files that the settings name.
func (o *Edge) checkFiles() error {
	return errors.Join(o.CheckReadable(), o.checkPolicy(), o.NATS.access().Check(), o.Redis.access().Check(), o.Auth.checkFiles(), o.Server.checkFiles(), o.AIP.checkFiles())
}

func (n *natsSettings) access() broker.Access {
	return broker.Access{
		Creds: n.creds, NKey: n.nkey, Token: string(n.token), User: n.user, Password: string(n.password),
		CA: n.ca, Cert: n.cert, Key: n.key,
	}
}

func (r *redisSettings) access() presence.Access {
	return presence.Access{
		User: r.user, Password: string(r.password), SentinelPassword: string(r.sentinel), CA: r.ca, Cert: r.cert, Key: r.key,
	}
}

// Broker returns how the edge connects to the log.
func (o *Edge) Broker(name string, log *slog.Logger) broker.Config {
	c := o.Settings.Broker(name, log)
	c.URL, c.Access = string(o.NATS.URLs), o.NATS.access()
	c.Replicas, c.Shards, c.Memory = o.NATS.replicas, o.NATS.shards, o.NATS.storage == "memory"
	return c
}

// Presence returns how the edge connects to presence.
func (o *Edge) Presence(log *slog.Logger) (c presence.Config, err error) {
	c = o.Settings.Presence(log)
	c.Lease = o.lease
	c.Client, err = o.Redis.access().Dial(string(o.Redis.URL))
	return c, err
}
