package reliability

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/agora-relay/agora/internal/agoratest"
	"github.com/agora-relay/agora/internal/await"
)

// TestNothingIsLostWhateverDies breaks one part of a cluster after the other while agents talk. Five of the cells are
// played each time, and with make chaos all of them.
func TestNothingIsLostWhateverDies(t *testing.T) {
	t.Parallel()
	c := start(t, agoratest.ProcessOptions{Lease: lease})
	sabotaged := ""
	if chaos {
		sabotaged = agoratest.BuildAgora(t, "sabotage")
	}
	var table []string
	for n, x := range slices.Repeat(played(), rounds) {
		t.Run(x.name, func(t *testing.T) { table = append(table, x.run(t, c, n, sabotaged, "").row()) })
		c.Under(t)
	}
	t.Logf("for docs/reliability.md:\n%s", strings.Join(table, "\n"))
}

// start starts a cluster whose agents are given up when they are silent for timeout.
func start(t testing.TB, o agoratest.ProcessOptions) *agoratest.Processes {
	t.Helper()
	o.Flags = append([]string{"--session.timeout", timeout.String(), "--session.heartbeat", heartbeat.String(), "--iat.keep-alive", heartbeat.String()}, o.Flags...)
	return agoratest.StartProcesses(t, o)
}

// played returns the cells that there is time for.
func played() []cell {
	return slices.DeleteFunc(cells(), func(x cell) bool { return !chaos && !x.always })
}

func cells() []cell {
	all := []cell{
		{name: "an edge is killed", fault: edgeKilled, caught: 2. / 3, always: true},
		{name: "an edge is frozen past its lease, and thawed", fault: edgeFrozen, aborts: true, talk: agoratest.TalkOptions{Silence: 2 * time.Second, Patient: true}},
		{name: "an edge is drained", fault: edgeDrained, always: true, iat: true, told: []string{"agent.reconnect", "close 1012"}},
		{name: "a dead edge's last words arrive late", fault: lastWordsOfTheDead},
		{name: "a frozen edge's last words arrive late", fault: lastWordsOfTheFrozen, aborts: true, talk: agoratest.TalkOptions{Silence: 2 * time.Second}},
		{name: "sockets are cut", fault: socketsCut},
		{
			// Slower, or more is said to the space meanwhile than its log holds.
			name: "an agent reads nothing, past its time", fault: socketStalled, talk: agoratest.TalkOptions{Beat: 60 * time.Millisecond},
		},
		{name: "an agent's network goes, and it comes back by another", fault: socketAbandoned},
		{name: "agents reconnect in a loop", fault: reconnectLoop},
		{name: "the leaders of all streams step down", fault: stepDown, calm: true},
		{name: "a NATS node is killed", fault: natsKilled, calm: true, always: true, iat: true},
		{name: "a NATS node comes back", fault: natsReturns, calm: true},
		{name: "a NATS node is cut off from the others", fault: natsIsolated, normal: 20 * time.Second},
		{name: "the log's answers are lost", fault: answersLost},
		{name: "all of NATS is down for 10 s", fault: natsDown, told: []string{"registering: UNAVAILABLE"}, always: true},
		{name: "Redis is down for 10 s", fault: redisDown, aborts: true, told: []string{"UNAVAILABLE"}},
		{name: "Redis is down past the leases, and comes back empty", fault: redisLong, aborts: true, told: []string{"UNAVAILABLE"}},
		{name: "Redis is restarted, empty", fault: redisEmpty, aborts: true, always: true},
		{name: "an edge is cut off from NATS", fault: cutFromNATS},
		{name: "an edge is cut off from NATS while the last is said", fault: quietAfterTheCut},
		{name: "an edge's lines to NATS go silent", fault: silentNATS},
		{name: "an edge is cut off from Redis", fault: cutFromRedis, aborts: true, told: []string{"UNAVAILABLE"}},
		{name: "an edge's line to Redis goes silent", fault: silentRedis, aborts: true, told: []string{"UNAVAILABLE"}},
	}
	for _, skew := range []string{"1h", "-1h"} {
		all = append(all, cell{
			name: "the clock of an edge is off by " + skew, fault: func(s *stage) { s.clockOff(skew) },
			talk: agoratest.TalkOptions{Deadline: 5 * time.Minute},
		})
	}
	return all
}

func edgeKilled(s *stage) { s.Edges[0].Kill() }

// edgeFrozen is over before the edge, when it thaws, could take its agents for silent since session.timeout.
func edgeFrozen(s *stage) {
	s.Edges[0].Freeze()
	s.lasts(lease * 3 / 2)
	s.Edges[0].Thaw()
}

func edgeDrained(s *stage) { s.Edges[0].Drain() }

func socketsCut(s *stage) {
	for i := range 6 {
		s.talk.Kick(i)
	}
	s.iat.kick()
}

// socketStalled has an agent read nothing while more is said to it than sockets hold, until its edge gives the socket
// up.
func socketStalled(s *stage) {
	s.but = []int{0}
	s.talk.Stall(0, true)
	s.talk.Bulk(0)
	s.lasts(2*timeout - time.Second)
	s.talk.Normal(5*time.Second, 0)
	s.talk.Stall(0, false)
	s.talk.Loses(0, 5*time.Second)
}

func socketAbandoned(s *stage) { s.talk.Abandon(0) }

func reconnectLoop(s *stage) {
	s.but = []int{0, 3}
	s.talk.Spin(0, true)
	s.talk.Spin(3, true)
	s.lasts(5 * time.Second)
	s.talk.Spin(0, false)
	s.talk.Spin(3, false)
}

func stepDown(s *stage) {
	for _, stream := range s.NATS.Streams() {
		s.NATS.StepDown(stream)
	}
}

// lastWordsOfTheDead has an edge die whose last records lie in the network until others have gone on.
func lastWordsOfTheDead(s *stage) {
	s.Edges[0].SilenceLog()
	s.lasts(200 * time.Millisecond) // for something to be on its way
	s.Edges[0].Kill()
	s.talk.Normal(15 * time.Second)
	s.Edges[0].MendLog()
}

// lastWordsOfTheFrozen is the same with an edge that lives, and hears what became of them.
func lastWordsOfTheFrozen(s *stage) {
	s.Edges[0].SilenceLog()
	s.lasts(200 * time.Millisecond)
	s.Edges[0].Freeze()
	s.talk.Normal(15 * time.Second)
	s.Edges[0].Thaw()
	s.lasts(lease / 2) // for it to renew its lease
	s.Edges[0].MendLog()
}

func natsKilled(s *stage) { s.NATS.Kill(s.leader()) }

// leader returns the node that leads the first stream.
func (s *stage) leader() int {
	s.t.Helper()
	k := s.NATS.Leader(s.NATS.Streams()[0])
	if k < 0 {
		s.t.Fatal("the first stream has no leader")
	}
	return k
}

func natsReturns(s *stage) {
	k := s.leader()
	s.NATS.Kill(k)
	s.talk.Normal(15 * time.Second)
	s.NATS.Start(k)
	s.NATS.Ready()
}

// apart has edge 0 use a NATS node of its own that leads no stream, and the others use the other nodes. It returns that
// node.
func (s *stage) apart() int {
	const node = 0
	s.Edges[0].Pin(node)
	s.Edges[1].Pin(1)
	s.Edges[2].Pin(2)
	for _, e := range s.Edges {
		e.Ready()
	}
	for _, stream := range s.NATS.Streams() {
		for s.NATS.Leader(stream) == node {
			s.NATS.StepDown(stream)
		}
	}
	s.talk.Progress(5)
	return node
}

// natsIsolated has an edge miss what is handed on live, without a sign of it: nothing comes later.
func natsIsolated(s *stage) {
	node := s.apart()
	s.NATS.Isolate(node)
	s.lasts(time.Second)
	s.talk.Pause(true)
	s.lasts(time.Second)
	s.NATS.Rejoin(node)
	s.talk.Arrived(20 * time.Second)
	s.talk.Pause(false)
}

// answersLost has an edge not hear that its records are stored, and another not get them live.
func answersLost(s *stage) {
	node := s.apart()
	s.talk.Pause(true)
	s.talk.Arrived(15 * time.Second)
	s.Edges[2].DeafenLog()
	s.NATS.Isolate(node)
	s.talk.Say()
	s.lasts(500 * time.Millisecond)
	s.NATS.Rejoin(node)
	s.Edges[2].CutLog()
	s.Edges[2].Pin(2)
	s.talk.Arrived(10 * time.Second)
	s.talk.Pause(false)
}

func natsDown(s *stage) {
	for k := range s.NATS.Nodes {
		s.NATS.Kill(k)
	}
	for _, e := range s.Edges {
		e.NotReady()
	}
	s.talk.Kick(0) // an agent that comes now is told
	s.lasts(10 * time.Second)
	await.True(s.t, "an agent that comes is told", func() bool { return s.talk.Recovery().Codes["registering: UNAVAILABLE"] > 0 })
	for k := range s.NATS.Nodes {
		s.NATS.Start(k)
	}
	s.NATS.Ready()
}

// redisDown refuses every connection to Redis, whose data is there again with it.
func redisDown(s *stage) {
	for _, e := range s.Edges {
		e.Presence.Cut()
	}
	s.lasts(10 * time.Second)
	for _, e := range s.Edges {
		e.NotReady()
		e.Presence.Mend()
	}
}

// redisLong is down past the lease of every edge, and has lost everything.
func redisLong(s *stage) {
	s.Redis.Stop()
	s.lasts(2 * lease)
	s.Redis.Start()
}

// redisEmpty has the agents of an edge come back at another before the edge could tell Redis of them.
func redisEmpty(s *stage) {
	s.Redis.Stop()
	s.Edges[0].Presence.Cut()
	s.talk.Move(0, 1)
	s.talk.Move(1, 1)
	s.Redis.Start()
	s.lasts(lease / 3)
	s.Edges[0].Presence.Mend()
}

func cutFromNATS(s *stage) {
	s.Edges[0].CutLog()
	s.lasts(5 * time.Second)
	s.Edges[0].MendLog()
}

// quietAfterTheCut leaves nothing that would show an edge what it has missed.
func quietAfterTheCut(s *stage) {
	s.Edges[0].CutLog()
	s.talk.Pause(true)
	s.talk.Say()
	s.lasts(2 * time.Second)
	s.Edges[0].MendLog()
	s.talk.Arrived(15 * time.Second)
	s.talk.Pause(false)
}

func silentNATS(s *stage) {
	s.Edges[0].SilenceLog()
	s.lasts(5 * time.Second)
	s.Edges[0].MendLog()
}

func cutFromRedis(s *stage) {
	s.Edges[0].Presence.Cut()
	s.lasts(2 * lease)
	s.Edges[0].Presence.Mend()
}

// silentRedis has an agent leave the edge that waits for Redis, while the socket that it has there stays open.
func silentRedis(s *stage) {
	s.Edges[0].Presence.Silence()
	s.talk.Abandon(0)
	s.lasts(10 * time.Second)
	s.Edges[0].Presence.Mend()
}

// clockOff has an edge come back with another wall clock.
func (s *stage) clockOff(skew string) {
	e := s.Edges[0]
	agora := e.Binary()
	e.Drain()
	e.Become(s.sabotaged, "AGORA_SABOTAGE="+s.off, "AGORA_SABOTAGE_CLOCK="+skew)
	e.Start()
	e.Ready()
	for i := range 3 {
		s.talk.Move(2*i, 0)
	}
	s.talk.Progress(50)
	e.Drain()
	e.Become(agora)
}
