package presence_test

import (
	"context"
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/agora-relay/agora/internal/servers"
	"github.com/agora-relay/agora/presence"
)

// shippedRights returns the rules of deploy/redis/edge.acl, and the commands that they allow.
func shippedRights(t *testing.T) (rules, commands []string) {
	t.Helper()
	rights, err := os.ReadFile("../deploy/redis/edge.acl")
	ok(t, err)
	rules = strings.Fields(string(rights))
	for _, rule := range rules {
		if name, is := strings.CutPrefix(rule, "+"); is {
			commands = append(commands, name)
		}
	}
	return rules, slices.Sorted(slices.Values(commands))
}

var called = regexp.MustCompile(`redis\.p?call\('([A-Z]+)'`)

// usedCommands returns the commands of Redis that the package runs: those of its scripts, and those of the client that
// its code calls.
func usedCommands(t *testing.T) []string {
	t.Helper()
	used := map[string]bool{"ping": true, "eval": true, "evalsha": true} // the first scripts run by the client's own means
	for _, path := range must(filepath.Glob("lua/*.lua"))(t) {
		for _, m := range called.FindAllStringSubmatch(string(must(os.ReadFile(path))(t)), -1) {
			used[strings.ToLower(m[1])] = true
		}
	}
	commands := commandsOfClient()
	for _, path := range must(filepath.Glob("*.go"))(t) {
		if strings.HasSuffix(path, "_test.go") || path == "rights.go" || strings.HasPrefix(path, "embed") {
			continue
		}
		file := must(parser.ParseFile(token.NewFileSet(), path, nil, 0))(t)
		ast.Inspect(file, func(n ast.Node) bool {
			call, is := n.(*ast.CallExpr)
			if !is {
				return true
			}
			f, is := call.Fun.(*ast.SelectorExpr)
			if is && len(call.Args) > 0 && commands[f.Sel.Name] && asksServer(f.X, call.Args[0]) {
				used[strings.ToLower(strings.TrimSuffix(f.Sel.Name, "WithScores"))] = true
			}
			return true
		})
	}
	return slices.Sorted(maps.Keys(used))
}

// asksServer reports whether a call is one of the client or of a pipeline: those have a context first.
func asksServer(of, first ast.Expr) bool {
	ctx, is := first.(*ast.Ident)
	if !is || ctx.Name != "ctx" {
		return false
	}
	switch x := of.(type) {
	case *ast.Ident:
		return x.Name == "p" || x.Name == "rdb"
	case *ast.SelectorExpr:
		return x.Sel.Name == "rdb"
	}
	return false
}

// commandsOfClient returns the names of the client's methods that are commands which an edge could run.
func commandsOfClient() map[string]bool {
	all := map[string]bool{}
	for _, name := range []string{
		"Append", "Copy", "Decr", "DecrBy", "Del", "Dump", "Exists", "Expire", "ExpireAt", "Get", "GetDel", "GetEx", "GetRange", "GetSet", "HDel", "HExists", "HGet",
		"HGetAll", "HIncrBy", "HKeys", "HLen", "HMGet", "HMSet", "HRandField", "HScan", "HSet", "HSetNX", "HVals", "Incr", "IncrBy", "Keys", "LIndex", "LInsert", "LLen",
		"LPop", "LPush", "LRange", "LRem", "LSet", "LTrim", "MGet", "MSet", "PExpire", "PExpireAt", "PTTL", "Persist", "Ping", "Publish", "RPop", "RPush", "Rename",
		"SAdd", "SCard", "SIsMember", "SMembers", "SRem", "SScan", "Scan", "Set", "SetEx", "SetNX", "StrLen", "Subscribe", "TTL", "Time", "Touch", "Type", "Unlink", "XAdd",
		"ZAdd", "ZCard", "ZCount", "ZIncrBy", "ZRange", "ZRangeByLex", "ZRangeByScore", "ZRangeWithScores", "ZRank", "ZRem", "ZScan", "ZScore",
	} {
		all[name] = true
	}
	return all
}

func TestTheRightsThatAreShippedAreWhatEdgesRun(t *testing.T) {
	t.Parallel()
	_, shipped := shippedRights(t)
	if used := usedCommands(t); !slices.Equal(used, shipped) {
		t.Errorf("edges run\n%v, and deploy/redis/edge.acl allows\n%v", used, shipped)
	}
	if tried := slices.Sorted(slices.Values(presence.Trials())); !slices.Equal(tried, shipped) {
		t.Errorf("an edge tries\n%v at its start, and deploy/redis/edge.acl allows\n%v", tried, shipped)
	}
}

func TestAnEdgeNamesTheRightsThatItLacks(t *testing.T) {
	t.Parallel()
	rules, shipped := shippedRights(t)
	flags := append([]string{"--user", "default", "on", "nopass", "~*", "+@all", "--user", "edge", "on", ">s3cret"}, rules...)
	addr := servers.RedisGuarded(t, nil, flags...)
	admin := redis.NewClient(&redis.Options{Addr: addr})
	defer admin.Close()
	await := func(t *testing.T) error {
		c := must(presence.Dial("redis://edge:s3cret@" + addr))(t)
		defer c.Close()
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		return presence.New(presence.Config{Client: c}).Await(ctx)
	}
	ok(t, await(t))
	for _, name := range shipped {
		switch name {
		case "eval", "evalsha", "set": // without one of these nothing is tried: the server's own word is told
			continue
		}
		ok(t, admin.Do(t.Context(), "acl", "setuser", "edge", "-"+name).Err())
		if err := await(t); err == nil || !strings.Contains(err.Error(), " "+strings.ToUpper(name)+",") {
			t.Errorf("without %s: %v", name, err)
		}
		ok(t, admin.Do(t.Context(), "acl", "setuser", "edge", "+"+name).Err())
	}
	ok(t, admin.Do(t.Context(), "acl", "setuser", "edge", "-zcard", "-pttl").Err())
	if err := await(t); err == nil || !strings.Contains(err.Error(), " PTTL, ZCARD,") {
		t.Errorf("without two: %v", err)
	}
}
