package edge_test

import (
	"context"
	"io"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/agora-relay/agora/edge"
	"github.com/agora-relay/agora/internal/agoratest"
)

// lost is what a receiver learns of the stream of an agent whose session is lost.
const lost = `{"type":"error","code":"STREAM_ABORTED","from":"lost","stream_id":"s"}`

// retold is a lease after which presence that has lost everything is whole again: the edges of these tests have it to
// tell what they hold.
const retold = 4 * time.Second

func TestWhatALostSessionHadOpenEndsOnceWhenRedisLosesEverything(t *testing.T) {
	if testing.Short() {
		t.Skip("left to make test")
	}
	t.Parallel()
	c := start(t, agoratest.Options{Grace: time.Minute, Node: edge.Config{Lease: retold, Search: time.Second}})
	receiver, _ := registered(t, c, 1, "receiver")
	back, welcome := registered(t, c, 2, "back") // in its grace, at an edge that lives
	talks, _ := registered(t, c, 2, "talks")
	gone, _ := registered(t, c, 0, "lost")
	for _, a := range []*agoratest.Client{back, talks, gone} {
		opens(a, receiver)
	}
	for _, a := range []*agoratest.Client{receiver, gone} {
		a.Send(`{"type":"space.join","id":"j","space":"room"}`)
		a.Await(`{"type":"space.joined"}`)
	}
	gone.Send(`{"type":"space.publish","id":"p","space":"room","data":{"text":"Hel"},"stream":true}`)
	event := receiver.Await(`{"type":"space.event.delta"}`).Text("event_id")
	raw := redis.NewClient(&redis.Options{Addr: c.Redis.Addr()})
	defer raw.Close()
	back.Drop()
	receiver.Until("its socket is known lost", func() bool {
		return raw.HGet(t.Context(), "agora:1:{a:default.back}:rec", "flushed").Val() != ""
	})
	c.CutEdge(0)
	forget(c)
	receiver.ExpectAll(lost, `{"type":"space.event.cancel","space":"room","event_id":"`+event+`"}`)
	receiver.Until("the log is known to be looked through", func() bool { return mark(t, raw) == "1" })
	back, _ = registered(t, c, 1, "back", token(welcome))
	for k, a := range []*agoratest.Client{talks, back} {
		a.Send(`{"type":"send_chunk","to":"receiver","n":2,"stream_id":"s","chunk":"c"}`, `{"type":"send_end","to":"receiver","n":3,"stream_id":"s"}`)
		from := []string{"talks", "back"}[k]
		receiver.Expect(`{"type":"message_chunk","from":"`+from+`"}`, `{"type":"message_end","from":"`+from+`"}`)
	}
	receiver.ExpectNone(during(200 * time.Millisecond))
}

// opens has an agent open a stream to another.
func opens(from, to *agoratest.Client) {
	from.Send(`{"type":"send","to":"receiver","n":1,"stream_id":"s","stream":true}`)
	from.Await(`{"type":"receipt","n":1}`)
	to.Expect(`{"type":"message","stream_id":"s"}`)
}

// mark is what presence's mark says.
func mark(t *testing.T, raw *redis.Client) string {
	t.Helper()
	return raw.Get(t.Context(), "agora:1:{edges}:whole").Val()
}

// Every edge that saw the loss dies before any has looked through the log; so does everybody where a cluster begins
// again on an old log.
func TestWhatALostSessionHadOpenEndsThoughAllEdgesDie(t *testing.T) {
	if testing.Short() {
		t.Skip("left to make test")
	}
	t.Parallel()
	for name, whole := range map[string]bool{"once presence is whole": true, "together with presence": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := start(t, agoratest.Options{Edges: 2, Node: leased(retold), Tune: func(k int, cfg *edge.Config) {
				if cfg.Search = time.Second; k < 2 {
					cfg.Search = time.Hour
				}
			}})
			raw := redis.NewClient(&redis.Options{Addr: c.Redis.Addr()})
			defer raw.Close()
			receiver, _ := registered(t, c, 1, "receiver")
			gone, _ := registered(t, c, 0, "lost")
			opens(gone, receiver)
			c.CutEdge(0)
			if !whole {
				c.CutEdge(1)
			}
			forget(c)
			if whole {
				receiver.Until("presence is whole", func() bool { return mark(t, raw) != "" })
				c.CutEdge(1)
			}
			receiver, _ = registered(t, c, c.AddEdge(), "receiver")
			receiver.Await(lost)
			receiver.Until("the log is known to be looked through", func() bool { return mark(t, raw) == "1" })
			receiver.ExpectNone(during(200 * time.Millisecond))
		})
	}
}

// An edge that can't reach presence for so long that its sessions are given up for lost has agents that don't know.
// They are asked to come back, and go on with their sessions; what they had open is aborted.
func TestAnAgentWhoseSessionWasGivenUpForLostComesBackAndGoesOn(t *testing.T) {
	if testing.Short() {
		t.Skip("left to make test")
	}
	t.Parallel()
	c := start(t, agoratest.Options{Node: edge.Config{Lease: retold, Search: time.Second}})
	receiver, _ := registered(t, c, 1, "receiver")
	sender, welcome := registered(t, c, 0, "lost")
	opens(sender, receiver)
	c.CutPresence(0)
	forget(c)
	receiver.Expect(lost)
	c.MendEdge(0)
	for sender.Gone() == nil {
		if sender.Try(`{"type":"send_chunk","to":"receiver","n":2,"stream_id":"s","chunk":"c"}`) != nil {
			break
		}
		sender.Next(100 * time.Millisecond)
	}
	sender.AwaitClosed(1012)
	sender, welcome = registered(t, c, 2, "lost", token(welcome))
	if welcome.Raw("resumed") != "true" {
		t.Errorf("welcomed by %s", welcome)
	}
	sender.Send(`{"type":"send_chunk","to":"receiver","n":2,"stream_id":"s","chunk":"c"}`)
	sender.Expect(`{"type":"error","code":"STREAM_ABORTED","n":2}`)
	stored(sender, "receiver", 3)
	got(receiver, 3)
}

// An agent that was given a new session, as presence knew none, leaves the old one behind at an edge that finds so only
// when it reaches presence again: that edge ends what was open there, also what came into the log after others looked
// through it, and though presence does not tell it so at once.
func TestAnEdgeThatFindsASessionReplacedEndsWhatItHadOpen(t *testing.T) {
	if testing.Short() {
		t.Skip("left to make test")
	}
	t.Parallel()
	var question unanswered
	c := start(t, agoratest.Options{Node: leased(retold), Hook: &question, Tune: func(k int, cfg *edge.Config) {
		if cfg.Search = time.Millisecond; k < 3 {
			cfg.Search = time.Hour // nothing ends because somebody looked through the log
		}
	}})
	raw := redis.NewClient(&redis.Options{Addr: c.Redis.Addr()})
	defer raw.Close()
	receiver, _ := registered(t, c, 1, "receiver")
	old, _ := registered(t, c, 0, "lost")
	session := raw.HGet(t.Context(), "agora:1:{a:default.lost}:rec", "session").Val()
	opens(old, receiver)
	c.CutPresence(0)
	question.about.Store(&session)
	forget(c)
	receiver.Until("presence is whole", func() bool { return mark(t, raw) != "" })
	if _, welcome := registered(t, c, 1, "lost"); welcome.Raw("resumed") == "true" {
		t.Fatalf("welcomed by %s", welcome)
	}
	c.MendEdge(0)
	receiver.Expect(lost)
	if !question.asked.Load() {
		t.Error("presence was not asked whether the session is lost")
	}
	old.AwaitClosed(4001)
	c.AddEdge()
	receiver.Until("the log is known to be looked through", func() bool { return mark(t, raw) == "1" })
	receiver.ExpectNone(during(200 * time.Millisecond))
}

// unanswered has presence not answer whether a session is lost, until the edge that asks has handed it over.
type unanswered struct {
	about atomic.Pointer[string]
	asked atomic.Bool
}

func (u *unanswered) DialHook(next redis.DialHook) redis.DialHook { return next }

func (u *unanswered) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return next
}

func (u *unanswered) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		session, args := u.about.Load(), cmd.Args()
		if session != nil && len(args) == 5 && args[4] == *session {
			u.asked.Store(true)
			cmd.SetErr(io.ErrUnexpectedEOF)
			return cmd.Err()
		}
		err := next(ctx, cmd)
		if err == nil && u.asked.Load() && strings.Contains(cmd.String(), "{a:default.lost}:unsettled") {
			u.about.Store(nil)
		}
		return err
	}
}
