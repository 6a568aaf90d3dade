package broker

import (
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/agora-relay/agora"
	"github.com/agora-relay/agora/broker/jslog"
	"github.com/agora-relay/agora/internal/await"
)

// leaveInDoubt has the first holder store ms without learning so, and refuse them; then the mailbox overflows, and the log can be reached again.
func (x *attack) leaveInDoubt(ms ...agora.Message) {
	x.t.Helper()
	x.refuseInDoubt(ms...)
	flood(x.t, x.e2, 4)
	x.reachAgain()
}

// refuseInDoubt has the first holder store ms without learning so, and refuse them.
func (x *attack) refuseInDoubt(ms ...agora.Message) {
	x.t.Helper()
	before, err := x.e2.Unread(x.t.Context(), bob, 0)
	if err != nil {
		x.t.Fatal(err)
	}
	x.c.Deafen()
	x.old.Pressed(time.Hour) // until all of them go into one record
	for _, m := range ms {
		x.old.Put(m, func(r Result) { x.results <- r })
	}
	x.old.Pressed(0)
	await.True(x.t, "it is stored", func() bool {
		n, err := x.e2.Unread(x.t.Context(), bob, 0)
		return err == nil && n == before+1
	})
	x.c.Cut()
	await.True(x.t, "the connection is lost", func() bool { return !x.e1.Connected() })
	x.old.mu.Lock()
	x.old.startRecovery(false)
	x.old.mu.Unlock()
	x.old.suspend(jslog.ErrSilent)
	for range ms {
		wantCode(x.t, await.Recv(x.t, "an answer", x.results), agora.Unavailable)
	}
}

// reachAgain lets the log be reached again, and returns when the lane has asked it.
func (x *attack) reachAgain() {
	x.t.Helper()
	x.c.Reset()
	await.True(x.t, "the lane has asked the log", func() bool { x.old.mu.Lock(); defer x.old.mu.Unlock(); return x.old.state == laneActive })
}

// TestWhatWasRefusedInDoubtIsMarkedWhenItComesAgain: the sender was told to send it again, and the mailbox has taken the first copy,
// which somebody may have read.
func TestWhatWasRefusedInDoubtIsMarkedWhenItComesAgain(t *testing.T) {
	t.Parallel()
	start := numbered(1, part(agora.Start, "s", "start"))
	for name, c := range map[string]struct {
		before, doubted []agora.Message
		want            []string
	}{
		"numbered":      {nil, []agora.Message{numbered(1, text("1")), numbered(2, text("2"))}, []string{"gap", "flood", "flood", "1 again", "2 again"}},
		"behind others": {[]agora.Message{numbered(1, text("1"))}, []agora.Message{numbered(2, text("2"))}, []string{"gap", "flood", "flood", "flood", "2 again"}},
		"with an id":    {nil, []agora.Message{ided("a", text("1"))}, []string{"gap", "flood", "flood", "flood", "1 again"}},
	} {
		t.Run(name, func(t *testing.T) {
			x := testAttack(t, nil, func(c *Config) { c.MaxRecords = 4 })
			for _, m := range c.before {
				store(t, x.old, m)
			}
			x.leaveInDoubt(c.doubted...)
			for _, m := range c.doubted {
				store(t, x.old, m)
			}
			x.want(c.want...)
		})
	}
	t.Run("another one", func(t *testing.T) {
		x := testAttack(t, nil, func(c *Config) { c.MaxRecords = 4 })
		x.leaveInDoubt(numbered(1, text("1")))
		wantCode(t, put(t, x.old, numbered(1, text("another"))), agora.InvalidRequest)
		store(t, x.old, numbered(2, text("2")))
		x.want("gap", "flood", "flood", "flood", "2")
	})
	t.Run("refused once more", func(t *testing.T) { // the lane was full when it came again
		x := testAttack(t, nil, func(c *Config) { c.MaxRecords, c.LaneBytes = 4, 1<<10 })
		large := numbered(1, text(strings.Repeat("x", 1<<10)))
		x.leaveInDoubt(large)
		x.old.Pressed(time.Hour)
		for _, m := range []agora.Message{text("first"), large} {
			x.old.Put(m, func(r Result) { x.results <- r })
		}
		x.old.Pressed(0)
		if r := await.Recv(t, "an answer", x.results); r.Err != nil {
			t.Fatalf("the first is refused: %v", r.Err)
		}
		wantCode(t, await.Recv(t, "an answer", x.results), agora.Unavailable)
		store(t, x.old, large)
		x.want("gap", "flood", "flood", "first", string(large.Body)+" again")
	})
	t.Run("an end", func(t *testing.T) { // its stream is aborted, and may have ended before
		x := testAttack(t, nil, func(c *Config) { c.MaxRecords = 4 })
		store(t, x.old, start)
		x.leaveInDoubt(numbered(2, part(agora.End, "s", "end")))
		wantCode(t, put(t, x.old, numbered(2, part(agora.End, "s", "end"))), agora.StreamAborted)
		x.want("gap", "flood", "flood", "flood", "abort(s) again")
	})
}

// TestAStreamThatWasRefusedInDoubtIsAborted: its parts were stored, and its sender, who does not number, was told that they were not, and
// sends no more of it.
func TestAStreamThatWasRefusedInDoubtIsAborted(t *testing.T) {
	t.Parallel()
	start, chunk := part(agora.Start, "s", "start"), part(agora.Chunk, "s", "chunk")
	for name, c := range map[string]struct {
		before, doubted []agora.Message
		want            []string
	}{
		"from its start on": {nil, []agora.Message{start, chunk}, []string{"start", "chunk", "abort(s)"}},
		"a part":            {[]agora.Message{start}, []agora.Message{chunk}, []string{"start", "chunk", "abort(s)"}},
		"its end":           {[]agora.Message{start}, []agora.Message{part(agora.End, "s", "end")}, []string{"start", "end"}},
		"with numbers": {
			[]agora.Message{numbered(1, start)}, []agora.Message{numbered(2, chunk)}, []string{"start", "chunk"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			x := testAttack(t, nil, nil)
			for _, m := range c.before {
				store(t, x.old, m)
			}
			x.refuseInDoubt(c.doubted...)
			x.reachAgain()
			if err := x.old.Flush(await.Context(t)); err != nil {
				t.Fatal(err)
			}
			x.want(c.want...)
		})
	}
}

// TestAStartThatOverflowTookInDoubtHasAnEnd: somebody may have read it before the mailbox took it. Its sender, who was told that it is not stored, may
// say no more of the stream; who numbers does, unless its session ends before.
func TestAStartThatOverflowTookInDoubtHasAnEnd(t *testing.T) {
	t.Parallel()
	start, chunk, abort := part(agora.Start, "s", "start"), part(agora.Chunk, "s", "chunk"), part(agora.Abort, "s", "STREAM_ABORTED")
	for name, c := range map[string]struct {
		doubted, then []agora.Message
		want          []string
	}{
		"and no more comes":           {[]agora.Message{start}, nil, []string{"gap", "flood", "flood", "flood", "abort(s) again"}},
		"with a part behind it":       {[]agora.Message{start, chunk}, nil, []string{"gap", "flood", "flood", "flood", "abort(s) again"}},
		"and comes again":             {[]agora.Message{start}, []agora.Message{start, chunk}, []string{"gap", "flood", "abort(s) again", "start again", "chunk again"}},
		"and comes again by number":   {[]agora.Message{numbered(1, start)}, []agora.Message{numbered(1, start), numbered(2, chunk)}, []string{"gap", "flood", "flood", "start again", "chunk"}},
		"by number, with a part more": {[]agora.Message{numbered(1, start), numbered(2, chunk)}, []agora.Message{numbered(1, start), numbered(2, chunk)}, []string{"gap", "flood", "flood", "start again", "chunk again"}},
		"and its session ends":        {[]agora.Message{numbered(1, start)}, []agora.Message{abort}, []string{"gap", "flood", "flood", "flood", "abort(s) again"}},
	} {
		t.Run(name, func(t *testing.T) {
			x := testAttack(t, nil, func(c *Config) { c.MaxRecords = 4 })
			x.leaveInDoubt(c.doubted...)
			if !x.old.MayBeOpen("s") && c.doubted[0].N != 0 {
				t.Error("presence is told that nobody waits for the stream's end")
			}
			for _, m := range c.then {
				store(t, x.old, m)
			}
			if err := x.old.Flush(await.Context(t)); err != nil {
				t.Fatal(err)
			}
			x.want(c.want...)
		})
	}
	t.Run("and the number is used up", func(t *testing.T) {
		x := testAttack(t, nil, func(c *Config) { c.MaxRecords = 4 })
		x.leaveInDoubt(numbered(1, start))
		x.old.Pass(1)
		wantCode(t, put(t, x.old, numbered(2, chunk)), agora.StreamNotFound)
	})
	t.Run("in pieces", func(t *testing.T) { // a frame's last piece alone has a number, which must be able to come again
		x := testAttack(t, nil, func(c *Config) { c.MaxRecords = 4 })
		x.leaveInDoubt(start)
		if err := x.old.Flush(await.Context(t)); err != nil {
			t.Fatal(err)
		}
		wantCode(t, put(t, x.old, numbered(1, part(agora.End, "s", "end"))), agora.Unavailable)
		store(t, x.old, start)
		store(t, x.old, numbered(1, part(agora.End, "s", "end")))
		x.want("gap", "flood", "abort(s) again", "start again", "end")
	})
}

// TestWhatGrewTooOldInDoubtIsMarked: the log could not be reached for so long that it has dropped what was stored before.
func TestWhatGrewTooOldInDoubtIsMarked(t *testing.T) {
	t.Parallel()
	var ahead atomic.Int64
	x := testAttack(t, func() time.Time { return time.Now().Add(time.Duration(ahead.Load())) }, nil)
	x.c.Deafen()
	x.old.Put(numbered(1, text("1")), func(r Result) { x.results <- r })
	await.True(t, "it is stored", func() bool { n, err := x.e2.Unread(t.Context(), bob, 0); return err == nil && n == 1 })
	x.c.Cut()
	await.True(t, "the connection is lost", func() bool { return !x.e1.Connected() })
	grow(t, x.e2, x.old.at.Stream)
	ahead.Store(int64(x.e1.cfg.MaxAge))
	x.c.Reset()
	if r := await.Recv(t, "it is stored anew", x.results); r.Err != nil || r.Again {
		t.Fatalf("stored anew: %+v", r)
	}
	x.want("1 again")
}

// TestAStreamDoesNotGoOnOverAPartThatWasRefusedBesideOneInDoubt: the lane was full for the second part, the record with the first one is
// stored, and its acknowledgement is lost.
func TestAStreamDoesNotGoOnOverAPartThatWasRefusedBesideOneInDoubt(t *testing.T) {
	t.Parallel()
	x := testAttack(t, nil, func(c *Config) { c.LaneBytes = 1 << 10 })
	store(t, x.old, part(agora.Start, "s", "start"))
	x.c.Deafen()
	x.old.Pressed(time.Hour) // until both go into one record
	for _, body := range []string{"first", strings.Repeat("x", 1<<10)} {
		x.old.Put(part(agora.Chunk, "s", body), func(r Result) { x.results <- r })
	}
	x.old.Pressed(0)
	await.True(t, "it is stored", func() bool { n, err := x.e2.Unread(t.Context(), bob, 0); return err == nil && n == 2 })
	x.c.Cut()
	await.True(t, "the connection is lost", func() bool { return !x.e1.Connected() })
	x.old.mu.Lock()
	x.old.startRecovery(false)
	x.old.mu.Unlock()
	x.reachAgain()
	if r := await.Recv(t, "an answer", x.results); r.Err != nil {
		t.Fatalf("the first is refused: %v", r.Err)
	}
	wantCode(t, await.Recv(t, "an answer", x.results), agora.Unavailable)
	if err := x.old.Flush(await.Context(t)); err != nil {
		t.Fatal(err)
	}
	x.want("start", "first", "abort(s)")
}
