package spaces

import (
	"fmt"
	"testing"
	"time"

	"github.com/agora-relay/agora"
	"github.com/agora-relay/agora/internal/await"
	"github.com/agora-relay/agora/presence"
)

func TestHistoryReplaysTheLastEvents(t *testing.T) {
	t.Parallel()
	es := edges(t, presence.Config{}, Config{})
	for n, want := range map[int]string{
		3: "4 5 6 end ", 1: "6 end ", 0: "end ", 7: "0 1 2 3 4 5 6 end ", 100: "0 1 2 3 4 5 6 end ",
	} {
		space := fmt.Sprint("room", n)
		for i := range 7 {
			es[i%2].say(t, space, fmt.Sprint(i), fmt.Sprint(i))
			if i == 4 {
				es[0].join(t, fmt.Sprint("x", n), space, Where{}) // its roster does not count
			}
		}
		l, j := es[1].join(t, fmt.Sprint("h", n), space, Where{History: n})
		// The answered position is as good as the replay itself.
		r := es[0].resume(t, "r", space, Where{HasLast: true, Last: j.Seq})
		es[0].say(t, space, "end", "end")
		for _, l := range []*listener{l, r} {
			if got := bodies(l.until("history", seen("end"))); got != want {
				t.Errorf("history %d gave %q, want %q", n, got, want)
			}
		}
	}
}

func TestAPositionIsReplayedFrom(t *testing.T) {
	t.Parallel()
	es := edges(t, presence.Config{}, Config{})
	one := es[0].say(t, "room", "1", "1")
	es[0].say(t, "room", "2", "2")
	es[0].join(t, "x", "room", Where{}) // older than the answer: not told again
	l, j := es[1].join(t, "y", "room", Where{HasLast: true, Last: one})
	es[0].say(t, "room", "3", "3")
	if got := bodies(l.until("y", seen("3"))); got != "2 3 " || len(l.got) != 2 || j.Seq != one {
		t.Errorf("got %q (%d events) after %d, want \"2 3 \" after %d", got, len(l.got), j.Seq, one)
	}
}

func TestResumeGoesOnFromItsPosition(t *testing.T) {
	t.Parallel()
	es := edges(t, presence.Config{}, Config{})
	begin := time.Now()
	one := es[0].say(t, "room", "1", "1")
	es[0].say(t, "room", "2", "2")
	known := es[1].resume(t, "a", "room", Where{After: one})
	marked := es[1].resume(t, "b", "room", Where{Since: begin, Marked: true})
	if got := bodies(known.until("known", seen("2"))); got != "2 " || known.got[0].Redelivered {
		t.Errorf("known got %q, redelivered %v, want \"2 \" unmarked", got, known.got[0].Redelivered)
	}
	marked.until("marked", seen("2"))
	es[0].say(t, "room", "3", "3")
	marked.until("marked", seen("3"))
	for _, e := range marked.got {
		if want := string(e.Body) != "3"; e.Redelivered != want {
			t.Errorf("%s: redelivered %v, want %v", e.Body, e.Redelivered, want)
		}
	}
	if got := bodies(marked.got); got != "1 2 3 " {
		t.Errorf("marked got %q, want \"1 2 3 \"", got)
	}
	known.until("known", seen("3"))
	if _, _, caught := known.place.Tail(); !caught {
		t.Error("known is not caught although it has everything")
	}
}

func TestResumeWithNothingKnownGoesOnFromNow(t *testing.T) {
	t.Parallel()
	es := edges(t, presence.Config{}, Config{})
	es[0].say(t, "room", "1", "1")
	a := es[1].resume(t, "a", "room", Where{})
	if _, err := a.place.Next(t.Context(), 1); err != nil {
		t.Fatal(err)
	}
	a.begun()
	es[0].say(t, "room", "2", "2")
	b := es[1].resume(t, "b", "room", Where{}) // the fan-out may or may not have 2 yet
	a.until("a", seen("2"))
	c := es[1].resume(t, "c", "room", Where{})
	es[0].say(t, "room", "3", "3")
	b.until("b", seen("3"))
	for _, l := range []*listener{a, c} {
		l.until("all", seen("3"))
	}
	if got := bodies(a.got) + bodies(c.got); got != "2 3 3 " {
		t.Errorf("a and c got %q, want \"2 3 3 \"", got)
	}
}

func TestTailMovesOnWhileASpaceIsQuiet(t *testing.T) {
	t.Parallel()
	es := edges(t, presence.Config{}, Config{})
	l, _ := es[0].join(t, "a", "room", Where{})
	last := es[1].say(t, "room", "1", "1")
	l.until("a", seen("1"))
	quiet := time.Now()
	await.True(t, "the tail is younger than the last event", func() bool {
		seq, at, caught := l.place.Tail()
		if !at.After(quiet) {
			return false
		}
		if seq>>agora.SeqShift != last>>agora.SeqShift || !caught {
			t.Errorf("tail %d, caught %v, want that of %d, true", seq, caught, last)
		}
		return true
	})
}

// A session that knows a time alone gets what was stored since: nothing of what is older, however soon it looks.
func TestResumeFromATimeGivesNothingOlder(t *testing.T) {
	t.Parallel()
	es := edges(t, presence.Config{}, Config{})
	es[0].say(t, "room", "1", "1")
	keeper := es[1].resume(t, "keeper", "room", Where{HasLast: true}) // the fan has begun
	keeper.until("keeper", seen("1"))
	a := es[1].resume(t, "a", "room", Where{Since: time.Now().Add(time.Hour)})
	if got, err := a.place.Next(t.Context(), 1<<20); err != nil || len(got) > 0 {
		t.Fatalf("got %v, %v, want nothing", got, err)
	}
	es[0].say(t, "room", "2", "2")
	a.until("a", seen("2"))
	if got := bodies(a.got); got != "2 " {
		t.Errorf("got %q, want \"2 \"", got)
	}
}
