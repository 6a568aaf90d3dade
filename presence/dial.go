package presence

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
)

// Dial returns a client for a Store. It connects when it is first used. The URL says what is there:
//
//	redis://user:password@host:6379/0             one server (rediss for TLS)
//	redis-cluster://host:6379?addr=host2:6379     a Redis Cluster (rediss-cluster)
//	redis-sentinel://host:26379?master_name=main  servers behind Sentinel (rediss-sentinel)
//
// Options of go-redis follow as query parameters, for example dial_timeout=2s. A server that
// refuses connections is found out at once: the one who calls the Store tries again, the client only a little.
// A call of the Store ends with its context, and each question in it after 12 seconds, also while a server says nothing.
func Dial(rawURL string) (Client, error) { return Access{}.Dial(rawURL) }

// Dial is like the function of that name, for a server that asks who is there.
func (a Access) Dial(rawURL string) (Client, error) {
	u, err := url.Parse(rawURL)
	if err != nil {
		return nil, errors.New("redis.url can't be read as an address") // the cause would quote the password
	}
	kind, known := strings.CutPrefix(u.Scheme, "rediss")
	if !known {
		kind, known = strings.CutPrefix(u.Scheme, "redis")
	}
	dial := map[string]func(string) (hookable, error){"": a.single, "-cluster": a.cluster, "-sentinel": a.sentinel}[kind]
	if dial == nil || !known {
		return nil, fmt.Errorf("redis.url must begin with redis://, redis-cluster:// or redis-sentinel:// (or rediss…), not %q", u.Scheme)
	}
	u.Scheme = strings.TrimSuffix(u.Scheme, kind)
	c, err := dial(u.String())
	if err != nil {
		return nil, fmt.Errorf("redis.url: %w", err)
	}
	c.AddHook(bounded{})
	return c, nil
}

// answerTime is how long a server may take for an answer, all that the library tries included. It is long: what is
// given up while a server has too much to do is asked again, and is more for it to do. Who must answer sooner has a
// context of its own. Tests set it.
var answerTime = 12 * time.Second

// bounded has each question end after answerTime.
type bounded struct{}

// DialHook leaves connecting as it is: the one who asks for it is bounded.
func (bounded) DialHook(next redis.DialHook) redis.DialHook { return next }

// ProcessHook bounds one command.
func (bounded) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		ctx, cancel := context.WithTimeout(ctx, answerTime)
		defer cancel()
		return next(ctx, cmd)
	}
}

// ProcessPipelineHook bounds commands that are sent together.
func (bounded) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		ctx, cancel := context.WithTimeout(ctx, answerTime)
		defer cancel()
		return next(ctx, cmds)
	}
}

// bufferSize is that of each of a connection's two buffers: a pool has dozens of connections, and hardly
// any call takes more. For those of pipelines the library would take 128 KiB, 2.5 MB for ten of
// them that are open for long after thousands of agents have come.
const bufferSize = 8 << 10

// hookable is a client that takes hooks.
type hookable interface {
	Client
	AddHook(hook redis.Hook)
}

func (a Access) single(u string) (hookable, error) {
	o, err := redis.ParseURL(u)
	if err != nil {
		return nil, err
	}
	o.DialerRetries, o.ContextTimeoutEnabled = 1, true
	o.ReadBufferSize, o.WriteBufferSize = bufferSize, bufferSize
	o.PipelineReadBufferSize, o.PipelineWriteBufferSize = bufferSize, bufferSize
	o.Username, o.Password = a.user(o.Username), a.password(o.Password)
	if err := a.secure(o.TLSConfig); err != nil {
		return nil, err
	}
	o.Dialer = a.dialer(o.TLSConfig, o.DialTimeout)
	return redis.NewClient(o), nil
}

// mapAge is how old what is known of a Redis Cluster's nodes may be. The client asks again where a node redirects it,
// but a master that has died redirects nobody: its slots are looked for there until then, whoever has them.
const mapAge = 2 * time.Second

func (a Access) cluster(u string) (hookable, error) {
	o, err := redis.ParseClusterURL(u)
	if err != nil {
		return nil, err
	}
	o.DialerRetries, o.ContextTimeoutEnabled = 1, true
	o.ReadBufferSize, o.WriteBufferSize = bufferSize, bufferSize
	o.PipelineReadBufferSize, o.PipelineWriteBufferSize = bufferSize, bufferSize
	o.Username, o.Password = a.user(o.Username), a.password(o.Password)
	if err := a.secure(o.TLSConfig); err != nil {
		return nil, err
	}
	o.Dialer = a.dialer(o.TLSConfig, o.DialTimeout)
	o.ClusterStateReloadInterval = mapAge
	return redis.NewClusterClient(o), nil
}

func (a Access) sentinel(u string) (hookable, error) {
	o, err := redis.ParseFailoverURL(u)
	switch {
	case err != nil:
		return nil, err
	case o.MasterName == "":
		return nil, errors.New("a redis-sentinel address needs ?master_name=NAME")
	case o.RouteByLatency || o.RouteRandomly || o.ReplicaOnly:
		return nil, errors.New("only the master may be asked: leave route_… and replica_only away")
	}
	o.DialerRetries, o.ContextTimeoutEnabled = 1, true
	o.ReadBufferSize, o.WriteBufferSize = bufferSize, bufferSize
	o.PipelineReadBufferSize, o.PipelineWriteBufferSize = bufferSize, bufferSize
	o.Username, o.Password = a.user(o.Username), a.password(o.Password)
	o.SentinelPassword = orGiven(a.SentinelPassword, o.SentinelPassword)
	if err := a.secure(o.TLSConfig); err != nil {
		return nil, err
	}
	o.Dialer = a.dialer(o.TLSConfig, o.DialTimeout)
	return redis.NewFailoverClient(o), nil
}

// LogClient makes the client library log to log, for the whole process: it knows no other way. For main.
func LogClient(log *slog.Logger) { redis.SetLogger(clientLog{log}) }

type clientLog struct{ log *slog.Logger }

// Printf takes what the library has to say: of connections, never of keys or values.
func (l clientLog) Printf(ctx context.Context, format string, v ...any) {
	l.log.DebugContext(ctx, "redis client", "err", fmt.Sprintf(format, v...))
}
