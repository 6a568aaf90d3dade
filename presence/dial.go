package presence

import (
	"context"
	"fmt"
	"log/slog"
	"net/url"

	"github.com/redis/go-redis/v9"
)

// Dial returns a client for a Store. It connects when it is first used. The URL says what is there:
//
//	redis://user:password@host:6379/0             one server (rediss for TLS)
//	redis-cluster://host:6379?addr=host2:6379     a Redis Cluster (rediss-cluster)
//	redis-sentinel://host:26379?master_name=main  servers behind Sentinel (rediss-sentinel)
//
// Options of go-redis follow as query parameters, for example dial_timeout=2s. A server that
// refuses connections is found out at once: whoever calls the Store tries again, the client only a little.
func Dial(rawURL string) (redis.UniversalClient, error) {
	u, err := url.Parse(rawURL)
	if err != nil {
		return nil, fmt.Errorf("presence URL can't be read") // the cause would quote the password
	}
	scheme := u.Scheme
	switch scheme {
	case "redis-cluster", "redis-sentinel":
		u.Scheme = "redis"
	case "rediss-cluster", "rediss-sentinel":
		u.Scheme = "rediss"
	}
	switch scheme {
	case "redis", "rediss":
		o, err := redis.ParseURL(u.String())
		if err != nil {
			return nil, fmt.Errorf("presence URL: %w", err)
		}
		o.DialerRetries = 1
		return redis.NewClient(o), nil
	case "redis-cluster", "rediss-cluster":
		o, err := redis.ParseClusterURL(u.String())
		if err != nil {
			return nil, fmt.Errorf("presence URL: %w", err)
		}
		o.DialerRetries = 1
		return redis.NewClusterClient(o), nil
	case "redis-sentinel", "rediss-sentinel":
		o, err := redis.ParseFailoverURL(u.String())
		if err != nil {
			return nil, fmt.Errorf("presence URL: %w", err)
		}
		o.DialerRetries = 1
		return redis.NewFailoverClient(o), nil
	}
	return nil, fmt.Errorf("presence URL must begin with redis://, redis-cluster:// or redis-sentinel:// (or rediss…), not %q", scheme)
}

// LogClient makes the client library log to log, for the whole process: it knows no other way. For main.
func LogClient(log *slog.Logger) { redis.SetLogger(clientLog{log}) }

type clientLog struct{ log *slog.Logger }

// Printf takes what the library has to say: of connections, never of keys or values.
func (l clientLog) Printf(ctx context.Context, format string, v ...any) {
	l.log.DebugContext(ctx, "redis client", "err", fmt.Sprintf(format, v...))
}
