package presence

import (
	"context"
	"errors"
	"strings"

	"github.com/redis/go-redis/v9"
)

// trialKey is the key that the rights are tried at. What it holds is a text, and gone in a second.
const trialKey = probeKey + ":trial"

// trials has every command that an edge runs, in a script or by itself, so that it does nothing: on a key that is no
// list, hash or sorted set. deploy/redis/edge.acl has the same.
var trials = [][]any{
	{"ping"}, {"time"}, {"eval", "return 1", 0}, {"evalsha", strings.Repeat("0", 40), 0},
	{"persist", trialKey}, {"set", trialKey, "1", "px", 1000}, {"setnx", trialKey, "1"}, {"get", trialKey}, {"exists", trialKey},
	{"pexpire", trialKey, 1000}, {"pttl", trialKey},
	{"hget", trialKey, "f"}, {"hset", trialKey, "f", "v"}, {"hsetnx", trialKey, "f", "v"}, {"hdel", trialKey, "f"}, {"hexists", trialKey, "f"},
	{"hgetall", trialKey}, {"hincrby", trialKey, "f", 1}, {"hkeys", trialKey}, {"hlen", trialKey}, {"hmget", trialKey, "f"},
	{"lindex", trialKey, 0}, {"lpop", trialKey}, {"lpush", trialKey, "v"}, {"lrange", trialKey, 0, 0}, {"ltrim", trialKey, 0, 0}, {"rpush", trialKey, "v"},
	{"zadd", trialKey, 1, "m"}, {"zcard", trialKey}, {"zrange", trialKey, 0, 0}, {"zrangebyscore", trialKey, 0, 0}, {"zrem", trialKey, "m"},
	{"zscan", trialKey, 0}, {"zscore", trialKey, "m"},
	{"del", trialKey},
}

// refusedRights returns the commands of trials that the server does not let this edge run, in capitals. One pipeline.
func refusedRights(ctx context.Context, rdb Client) (names []string, err error) {
	p := rdb.Pipeline()
	for _, trial := range trials {
		p.Do(ctx, trial...)
	}
	cmds, err := p.Exec(ctx)
	for _, cmd := range cmds {
		if redis.HasErrorPrefix(cmd.Err(), "NOPERM") {
			names = append(names, strings.ToUpper(cmd.Name()))
		}
	}
	if _, is := errors.AsType[redis.Error](err); is && cmds[0].Err() == nil && cmds[0].(*redis.Cmd).Val() != nil {
		err = nil // the server has answered: a text is no list
	}
	return names, unavailable(err)
}
