package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"go.yaml.in/yaml/v3"

	"github.com/agora-relay/agora"
	"github.com/agora-relay/agora/broker"
	"github.com/agora-relay/agora/client"
	"github.com/agora-relay/agora/internal/await"
	"github.com/agora-relay/agora/internal/pause"
	"github.com/agora-relay/agora/internal/servers"
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

// guardedNATS starts a server with a user for each of those rights, in an account of its own, and returns an edge's
// flags for each.
func guardedNATS(t *testing.T, rights ...string) (flags [][]string) {
	t.Helper()
	var accounts strings.Builder
	for k, r := range rights {
		fmt.Fprintf(&accounts, "A%d { jetstream: enabled, users: [ { user: edge%d, password: s3cret, permissions: {\n%s\n} } ] }\n", k, k, r)
	}
	url := servers.StartNATS(t, servers.NATSConfig{More: "accounts {\n" + accounts.String() + "}"}).URL()
	for k := range rights {
		flags = append(flags, []string{"--nats.url", url, "--nats.user", fmt.Sprint("edge", k), "--nats.password", "s3cret"})
	}
	return flags
}

// natsOfEach starts a server, and returns an edge's flags for each of so many logs of their own: an edge that finds a
// log in use and nobody present waits for as long as a lease, for those who may be.
func natsOfEach(t *testing.T, n int) (flags [][]string) {
	t.Helper()
	return guardedNATS(t, slices.Repeat([]string{`publish: ">", subscribe: ">"`}, n)...)
}

// guardedRedis starts a server where an edge may do what rules say, and returns its flags, and a client that may do
// all.
func guardedRedis(t *testing.T, rules []string) ([]string, *redis.Client) {
	t.Helper()
	flags := append([]string{"--user", "default", "off", "--user", "admin", "on", ">4dmin", "~*", "+@all", "--user", "edge", "on", ">s3cret"}, rules...)
	addr := servers.RedisGuarded(t, nil, flags...)
	admin := redis.NewClient(&redis.Options{Addr: addr, Username: "admin", Password: "4dmin"})
	t.Cleanup(func() { admin.Close() })
	return []string{"--redis.url", "redis://" + addr, "--redis.user", "edge", "--redis.password", "s3cret"}, admin
}

// couple is two edges that do all there is to do, once. They are processes, to be killed: one that is refused what it
// needs ends slowly. All is one goroutine's, but for said.
type couple struct {
	t     *testing.T
	flags []string
	log   output // of the connection that book makes

	mu    sync.Mutex // guards the field below
	edges []*running
}

func newCouple(t *testing.T, flags ...[]string) *couple {
	return &couple{t: t, flags: slices.Concat(append([][]string{alone}, flags...)...)}
}

// edge launches one more, and returns once it is ready.
func (p *couple) edge(ctx context.Context, args ...string) (*running, error) {
	r := launchApart(p.t, append(p.flags, args...)...)
	p.mu.Lock()
	p.edges = append(p.edges, r)
	p.mu.Unlock()
	for !r.greeted() {
		if len(r.status) > 0 || !pause.For(ctx, 5*time.Millisecond) {
			return nil, errors.New("the edge does not start")
		}
	}
	return r, nil
}

// said is what the edges said.
func (p *couple) said() (all string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, r := range p.edges {
		all += r.stderr.String()
	}
	return all + p.log.String()
}

// all has two edges start, and agents of theirs do all that asks for a right: the second changes a stream's limits, a
// message goes from one to the other, another waits for its agent, an event goes through a space, a session continues
// at the other edge, a mailbox is purged, an edge asks the other who holds an id.
func (p *couple) all(ctx context.Context) error {
	first, err := p.edge(ctx)
	if err != nil {
		return err
	}
	second, err := p.edge(ctx, "--mailbox.max-records", "4000")
	if err != nil {
		return err
	}
	for _, step := range []func(context.Context, *running, *running) error{message, mail, event, move, purge, twice, p.book} {
		if err := step(ctx, first, second); err != nil {
			return err
		}
	}
	return nil
}

// at is an agent at an edge.
func at(ctx context.Context, r *running, id string) (*client.Client, error) {
	return client.Dial(ctx, client.Config{URLs: []string{r.public}, Agent: id})
}

// takes waits for a message.
func takes(ctx context.Context, c *client.Client) error {
	for _, err := range c.Messages(ctx) {
		return err
	}
	return ctx.Err()
}

func message(ctx context.Context, first, second *running) error {
	alice, err := at(ctx, first, "alice")
	if err != nil {
		return err
	}
	defer alice.Close()
	bob, err := at(ctx, second, "bob")
	if err != nil {
		return err
	}
	defer bob.Close()
	if err := alice.Send(ctx, "bob", "hello"); err != nil {
		return err
	}
	return takes(ctx, bob)
}

// mail is for bob, who has left the second edge and comes to the first one.
func mail(ctx context.Context, first, second *running) error {
	alice, err := at(ctx, second, "alice")
	if err != nil {
		return err
	}
	defer alice.Close()
	if err := alice.Send(ctx, "bob", "hello again"); err != nil {
		return err
	}
	bob, err := at(ctx, first, "bob")
	if err != nil {
		return err
	}
	defer bob.Close()
	return takes(ctx, bob)
}

func event(ctx context.Context, first, second *running) error {
	var rooms []*client.Space
	for k, r := range []*running{first, second} {
		c, err := at(ctx, r, fmt.Sprint("member-", k))
		if err != nil {
			return err
		}
		defer c.Close()
		room, err := c.Join(ctx, "room")
		if err != nil {
			return err
		}
		rooms = append(rooms, room)
	}
	if err := rooms[0].PublishText(ctx, "hello"); err != nil {
		return err
	}
	for e, err := range rooms[1].Events(ctx) {
		if err != nil || e.Roster == nil {
			return err
		}
	}
	return ctx.Err()
}

// move has an agent lose its connection, and go on at the other edge.
func move(ctx context.Context, first, second *running) error {
	var line net.Conn
	to := strings.TrimSuffix(strings.TrimPrefix(first.public, "ws://"), "/ws")
	cfg := client.Config{URLs: []string{first.public}, Agent: "dave", Dial: func(ctx context.Context, network, _ string) (c net.Conn, err error) {
		line, err = new(net.Dialer).DialContext(ctx, network, to)
		return line, err
	}}
	dave, err := client.Dial(ctx, cfg)
	if err != nil {
		return err
	}
	defer dave.Close()
	if err := dave.Send(ctx, "dave", "before"); err != nil {
		return err
	}
	to = strings.TrimSuffix(strings.TrimPrefix(second.public, "ws://"), "/ws")
	line.Close()
	return dave.Send(ctx, "dave", "after")
}

// purge drops what waits for bob.
func purge(ctx context.Context, first, _ *running) error {
	alice, err := at(ctx, first, "alice")
	if err != nil {
		return err
	}
	defer alice.Close()
	if err := alice.Send(ctx, "bob", "for nobody"); err != nil {
		return err
	}
	var out output
	if status := run(ctx, []string{"mailbox", "purge", "bob", "--admin", first.admin}, strings.NewReader(""), &out, &out); status != 0 {
		return fmt.Errorf("purge ended with %d: %s", status, out.String())
	}
	return nil
}

// twice has a second one come for an id that is held at the other edge, which is asked for it.
func twice(ctx context.Context, first, second *running) error {
	carol, err := at(ctx, first, "carol")
	if err != nil {
		return err
	}
	defer carol.Close()
	other, err := at(ctx, second, "carol")
	if err == nil {
		other.Close()
		return errors.New("an id is held twice")
	}
	if agora.AsError(err).Code != agora.AgentExists {
		return err
	}
	return nil
}

// book has something opened and decided that is decided once, by the edges' user.
func (p *couple) book(ctx context.Context, _, _ *running) error {
	flag := func(name string) string {
		if k := slices.Index(p.flags, name); k >= 0 {
			return p.flags[k+1]
		}
		return ""
	}
	b, err := broker.Connect(ctx, broker.Config{
		URL: flag("--nats.url"), Access: broker.Access{User: flag("--nats.user"), Password: flag("--nats.password")}, MaxRecords: 4000,
		Calls: broker.Keeps{ShardBytes: 64 << 20}, Log: slog.New(slog.NewTextHandler(&p.log, nil)),
	})
	if err != nil {
		return err
	}
	defer b.Close()
	e, _, err := b.Book().Open(ctx, broker.Entry{Tenant: agora.DefaultTenant, Name: "x", Body: nil})
	if err == nil {
		_, _, err = b.Book().Decide(ctx, e, nil)
	}
	return err
}

// within runs f beside the test until it is told to end, and returns its end.
func within(t *testing.T, f func(context.Context) error) (over chan error, end func()) {
	ctx, cancel := context.WithCancel(await.Context(t))
	over = make(chan error, 1)
	var all sync.WaitGroup
	all.Go(func() { over <- f(ctx) })
	return over, func() { cancel(); all.Wait() }
}

// served reports whether what is to fail comes to a good end, while the machine has time for it.
func served(over chan error) bool {
	select {
	case err := <-over:
		return err == nil
	case <-time.After(500 * time.Millisecond):
		return false
	}
}

func TestAnEdgeNeedsNoMoreThanTheRightsThatAreDocumented(t *testing.T) {
	if testing.Short() {
		t.Skip("left to make test")
	}
	t.Parallel()
	nats := guardedNATS(t, fileOf(t, natsRights))[0]
	presence, admin := guardedRedis(t, strings.Fields(fileOf(t, redisRights)))
	p := newCouple(t, nats, presence)
	err := p.all(await.Context(t))
	if err == nil { // agents are cut at random
		verb := []string{"bench", "soak", "--edges", p.edges[0].public + "," + p.edges[1].public, "--duration", "2s", "--cuts", "4", "--settle", await.Long.String()}
		var out output
		if status := run(await.Context(t), verb, strings.NewReader(""), &out, &out); status != 0 {
			err = fmt.Errorf("agora bench soak: %d: %s", status, out.String())
		}
	}
	for _, r := range p.edges {
		r.ended()
	}
	if said := p.said(); err != nil || strings.Contains(said, "iolation") {
		t.Errorf("%v\n%s", err, said)
	}
	refused, err := admin.Do(t.Context(), "ACL", "LOG").Slice()
	if err != nil || len(refused) > 0 {
		t.Errorf("Redis refused %v (%v)", refused, err)
	}
}

var natsRight = regexp.MustCompile(`"([^"]+)"`)

// slows are rights without which an edge is refused something and serves nevertheless, later or by a worse clock: what
// it does not hear it finds in the log.
var slows = map[string]bool{
	`publish "agora.ask.*"`: true, `subscribe "agora.ask.*"`: true, `publish "_INBOX.>"`: true, `publish "agora.live.>"`: true, `subscribe "agora.live.>"`: true, `publish "$SYS.REQ.USER.INFO"`: true,
	`subscribe "$JS.EVENT.ADVISORY.STREAM.LEADER_ELECTED.*"`: true,
}

func TestAnEdgeNeedsEachOfItsRightsAtNATS(t *testing.T) {
	t.Parallel()
	rights := fileOf(t, natsRights)
	publish, subscribe, _ := strings.Cut(rights, "subscribe:")
	var names, without []string // what is taken away, and the rights that are left
	for _, right := range natsRight.FindAllString(publish, -1) {
		names, without = append(names, "publish "+right), append(without, strings.Replace(publish, right, `"none"`, 1)+"subscribe:"+subscribe)
	}
	for _, right := range natsRight.FindAllString(subscribe, -1) {
		names, without = append(names, "subscribe "+right), append(without, publish+"subscribe:"+strings.Replace(subscribe, right, `"none"`, 1))
	}
	names, without = append(names, "nothing at all"), append(without, rights)
	nats, redis, other := guardedNATS(t, without...), servers.Redis(t).Addr(), servers.Redis(t).Addr()
	for k, name := range names {
		if testing.Short() && !strings.HasSuffix(name, `.GET.*"`) && !strings.Contains(name, "INFO.*") {
			continue
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			db := fmt.Sprintf("redis://%s/%d", []string{redis, other}[k/16], k%16) // of which a server has 16
			p := newCouple(t, nats[k], []string{"--redis.url", db})
			over, end := within(t, p.all)
			defer end()
			if name == "nothing at all" { // or the test shows nothing
				if err := await.Recv(t, "all is done", over); err != nil {
					t.Errorf("%v:\n%s", err, p.said())
				}
				return
			}
			right := strings.Trim(strings.Fields(name)[1], `"`)
			subject := regexp.QuoteMeta(strings.TrimRight(right, ".*>")) // what it begins with
			violation := regexp.MustCompile(`(?i)permissions violation for \w+ to \\?"` + subject)
			if !await.Within(await.Long, func() bool { return violation.MatchString(p.said()) }) {
				t.Errorf("nothing was refused:\n%s", p.said())
			}
			if !slows[name] && served(over) {
				t.Error("all went well without it")
			}
		})
	}
}

func TestAnEdgeNeedsItsRightsAtRedis(t *testing.T) {
	t.Parallel()
	rules := strings.Fields(fileOf(t, redisRights))
	all := []string{"nothing", "~agora:1:*", "+evalsha", "+eval", "+hset", "+zadd", "+time"}
	nats := natsOfEach(t, len(all))
	for k, without := range all {
		t.Run(without, func(t *testing.T) {
			t.Parallel()
			presence, admin := guardedRedis(t, slices.DeleteFunc(slices.Clone(rules), func(r string) bool { return r == without }))
			p := newCouple(t, nats[k], presence)
			over, end := within(t, func(ctx context.Context) error {
				e, err := p.edge(ctx)
				if err == nil {
					err = message(ctx, e, e)
				}
				return err
			})
			defer end()
			if without == "nothing" { // or the test shows nothing
				if err := await.Recv(t, "an agent is served", over); err != nil {
					t.Error(err)
				}
				return
			}
			await.True(t, "Redis refuses something", func() bool {
				refused, err := admin.Do(t.Context(), "ACL", "LOG").Slice()
				return err == nil && len(refused) > 0
			})
			if served(over) {
				t.Error("all went well without it")
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

// What edges have written is there when a Redis starts again that is started as docker-compose.yml starts it. As the
// user "default" it reads its file, and drops what that may not do.
func TestWhatScriptsWroteOutlivesARestartOfRedis(t *testing.T) {
	t.Parallel()
	var compose struct {
		Services struct{ Redis struct{ Command []string } }
	}
	if err := yaml.Unmarshal([]byte(fileOf(t, "../../docker-compose.yml")), &compose); err != nil {
		t.Fatal(err)
	}
	flags := slices.Clone(compose.Services.Redis.Command[1:])
	dir := t.TempDir()
	for i, f := range flags {
		switch {
		case f == "--dir":
			flags[i+1] = dir
		case strings.HasPrefix(f, ">"):
			flags[i] = ">s3cret"
		}
	}
	flags = append(flags, "--user", "admin", "on", ">4dmin", "~*", "+@all")
	begin := func() *redis.Client {
		c := redis.NewClient(&redis.Options{Addr: servers.RedisGuarded(t, nil, flags...), Username: "admin", Password: "4dmin"})
		t.Cleanup(func() { c.Close() })
		return c
	}
	ctx := await.Context(t)
	first := begin()
	if err := first.Eval(ctx, "redis.call('SET', KEYS[1], '1') redis.call('SET', KEYS[2], '2')", []string{"agora:1:a", "agora:1:b"}).Err(); err != nil && !errors.Is(err, redis.Nil) {
		t.Fatal(err)
	}
	_ = first.ShutdownSave(ctx).Err() // it hangs up
	if n, err := begin().DBSize(ctx).Result(); n != 2 || err != nil {
		t.Errorf("%d of 2 keys are there after a restart: %v", n, err)
	}
}
