package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"go.yaml.in/yaml/v3"

	"github.com/agora-relay/agora/internal/agoratest"
)

const natsRights, redisRights = "../../deploy/nats/edge-permissions.conf", "../../deploy/redis/edge.acl"

// fileOf returns a file of the repository.
func fileOf(t *testing.T, path string) string {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// guardedNATS starts a server whose only user may do what rights say, and returns an edge's flags for it.
func guardedNATS(t *testing.T, rights string) []string {
	t.Helper()
	more := "accounts { AGORA { jetstream: enabled, users: [ { user: edge, password: s3cret, permissions: {\n" + rights + "\n} } ] } }"
	return []string{"--nats.url", agoratest.StartNATS(t, agoratest.NATSConfig{More: more}).URL(), "--nats.user", "edge", "--nats.password", "s3cret"}
}

// guardedRedis starts a server where an edge may do what rules say, and returns its flags, and a client that may do all.
func guardedRedis(t *testing.T, rules []string) ([]string, *redis.Client) {
	t.Helper()
	flags := append([]string{"--user", "default", "off", "--user", "admin", "on", ">4dmin", "~*", "+@all", "--user", "edge", "on", ">s3cret"}, rules...)
	addr := agoratest.RedisGuarded(t, nil, flags...)
	admin := redis.NewClient(&redis.Options{Addr: addr, Username: "admin", Password: "4dmin"})
	t.Cleanup(func() { admin.Close() })
	return []string{"--redis.url", "redis://" + addr, "--redis.user", "edge", "--redis.password", "s3cret"}, admin
}

// drive has two edges do all there is to do for so long: messages, streams, questions, spaces, agents that come back at
// the other edge, lists, a mailbox purged, a stream's limits changed. What has no answer is waited for no longer than
// patience. It returns what the edges said, and what failed.
func drive(t *testing.T, how, patience time.Duration, flags ...string) (said string, failed error) {
	t.Helper()
	args := append([]string{"--auth", "none", "--nats.replicas", "1", "--nats.shards", "1", "--start.timeout", "4s", "--drain.timeout", "1s", "--edge.lease", "3s"}, flags...)
	first := launch(t, args...)
	if !first.started() {
		return first.stderr.String(), fmt.Errorf("the edge does not start")
	}
	second := launch(t, append(args, "--mailbox.max-records", "4000")...)
	if !second.started() {
		return first.stderr.String() + second.stderr.String(), fmt.Errorf("the second edge does not start")
	}
	ctx, cancel := context.WithTimeout(t.Context(), how+3*patience)
	defer cancel()
	for _, verb := range [][]string{
		{"bench", "soak", "--edges", first.public + "," + second.public, "--duration", how.String(), "--cuts", "2", "--settle", patience.String()},
		{"send", "--from", "alice", "--to", "alice", "x", "--url", first.public},
		{"agents", "--url", second.public}, {"spaces", "--url", second.public},
		{"mailbox", "purge", "alice", "--admin", first.admin},
	} {
		var out, errs output
		if status := run(ctx, verb, strings.NewReader(""), &out, &errs); status != 0 {
			failed = fmt.Errorf("agora %s: %d: %s%s", strings.Join(verb[:2], " "), status, out.String(), errs.String())
			break
		}
	}
	if failed == nil { // one edge asks another who holds an id
		holder := connect(t, first.public+"?agent_id=carol")
		holder.hear("agent.registered")
		newcomer := connect(t, second.public+"?agent_id=carol")
		newcomer.ReadMessage()
		newcomer.Close()
		first.ended(holder)
	}
	first.ended()
	second.ended()
	return first.stderr.String() + second.stderr.String(), failed
}

// started waits until an edge is ready, or has ended by itself.
func (r *running) started() bool {
	r.t.Helper()
	until(r.t, "agora edge is ready or ends", func() bool {
		return len(r.status) > 0 || strings.Contains(r.stdout.String(), "admin")
	})
	if len(r.status) > 0 {
		return false
	}
	r.ready()
	return true
}

func TestAnEdgeNeedsNoMoreThanTheRightsThatAreDocumented(t *testing.T) {
	if testing.Short() {
		t.Skip("left to make test")
	}
	t.Parallel()
	nats := guardedNATS(t, fileOf(t, natsRights))
	presence, admin := guardedRedis(t, strings.Fields(fileOf(t, redisRights)))
	said, err := drive(t, 4*time.Second, patience, append(nats, presence...)...)
	if err != nil || strings.Contains(said, "iolation") {
		t.Errorf("%v\n%s", err, said)
	}
	refused, err := admin.Do(t.Context(), "ACL", "LOG").Slice()
	if err != nil || len(refused) > 0 {
		t.Errorf("Redis refused %v (%v)", refused, err)
	}
}

var natsRight = regexp.MustCompile(`"([^"]+)"`)

// slows are rights without which an edge is refused something and serves all the same, later or by a worse clock: what
// it does not hear it finds in the log.
var slows = map[string]bool{
	`publish "agora.ask.*"`: true, `subscribe "agora.ask.*"`: true, `publish "_INBOX.>"`: true, `publish "agora.live.>"`: true, `subscribe "agora.live.>"`: true, `publish "$SYS.REQ.USER.INFO"`: true,
	`subscribe "$JS.EVENT.ADVISORY.STREAM.LEADER_ELECTED.*"`: true,
}

func TestAnEdgeNeedsEachOfItsRightsAtNATS(t *testing.T) {
	rights := fileOf(t, natsRights)
	publish, subscribe, _ := strings.Cut(rights, "subscribe:")
	var all [][2]string // the rights without one, and what it is
	for _, right := range natsRight.FindAllString(publish, -1) {
		all = append(all, [2]string{strings.Replace(publish, right, `"none"`, 1) + "subscribe:" + subscribe, "publish " + right})
	}
	for _, right := range natsRight.FindAllString(subscribe, -1) {
		all = append(all, [2]string{publish + "subscribe:" + strings.Replace(subscribe, right, `"none"`, 1), "subscribe " + right})
	}
	if testing.Short() {
		all = slices.DeleteFunc(all, func(r [2]string) bool {
			return !strings.HasSuffix(r[1], `.GET.*"`) && !strings.Contains(r[1], "INFO.*")
		})
	}
	for _, r := range all {
		t.Run(r[1], func(t *testing.T) {
			t.Parallel()
			var said string
			var err error
			for how := time.Second; err == nil && how < 10*time.Second; how *= 3 { // agents are cut at random: a short time may need no such right
				said, err = drive(t, how, 4*time.Second, append(guardedNATS(t, r[0]), "--redis.url", "redis://"+agoratest.Redis(t).Addr())...)
				if slows[r[1]] {
					break
				}
			}
			right := strings.Trim(strings.Fields(r[1])[1], `"`)
			subject := regexp.QuoteMeta(strings.TrimRight(right, ".*>")) // what it begins with
			if !regexp.MustCompile(`(?i)permissions violation for \w+ to \\?"` + subject).MatchString(said) {
				t.Errorf("nothing was refused (%v):\n%s", err, said)
			}
			if err == nil && !slows[r[1]] {
				t.Error("all went well without it")
			}
		})
	}
}

func TestAnEdgeNeedsItsRightsAtRedis(t *testing.T) {
	nats := []string{"--nats.url", agoratest.StartNATS(t, agoratest.NATSConfig{}).URL()}
	rules := strings.Fields(fileOf(t, redisRights))
	for _, without := range []string{"~agora:1:*", "+evalsha", "+eval", "+hset", "+zadd", "+time"} {
		t.Run(without, func(t *testing.T) {
			t.Parallel()
			presence, admin := guardedRedis(t, slices.DeleteFunc(slices.Clone(rules), func(r string) bool { return r == without }))
			e := launch(t, append(append([]string{"--auth", "none", "--nats.replicas", "1", "--nats.shards", "1", "--start.timeout", "4s"}, nats...), presence...)...)
			serves := e.started()
			if serves {
				ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
				defer cancel()
				var out, errs output
				serves = run(ctx, []string{"send", "--from", "alice", "--to", "alice", "x", "--url", e.public, "--timeout", "2s"}, strings.NewReader(""), &out, &errs) == 0
			}
			refused, err := admin.Do(t.Context(), "ACL", "LOG").Slice()
			if err != nil || serves || len(refused) == 0 {
				t.Errorf("an agent is served: %v; Redis refused %v (%v)", serves, refused, err)
			}
		})
	}
}

// What is started by docker-compose.yml and what is documented are those rights.
func TestTheRightsThatAreTestedAreThoseGivenAndDocumented(t *testing.T) {
	var compose struct {
		Services struct{ Redis struct{ Command []string } }
	}
	if err := yaml.Unmarshal([]byte(fileOf(t, "../../docker-compose.yml")), &compose); err != nil {
		t.Fatal(err)
	}
	rules := strings.Fields(fileOf(t, redisRights))
	if given := compose.Services.Redis.Command; len(given) < len(rules) || !slices.Equal(given[len(given)-len(rules):], rules) {
		t.Errorf("docker-compose.yml gives the edges' user %v, want %v", given, rules)
	}
	page := fileOf(t, "../../docs/security.md")
	for _, path := range []string{natsRights, redisRights} {
		if !strings.Contains(page, "```\n"+fileOf(t, path)+"```\n") {
			t.Errorf("docs/security.md does not have what %s has: copy it", filepath.Base(path))
		}
	}
}
