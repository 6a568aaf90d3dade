package p2p_test

import (
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/libp2p/go-libp2p/core/network"
	"github.com/libp2p/go-libp2p/core/peer"

	"github.com/agora-relay/agora/edge"
	"github.com/agora-relay/agora/internal/agoratest"
	"github.com/agora-relay/agora/internal/await"
)

// kept opens a stream to who echoes through edge k, on which one byte has come and gone.
func (h *host) kept(k int, to peer.ID) network.Stream {
	h.s.t.Helper()
	s, err := h.opens(k, to, echo)
	if err != nil {
		h.s.t.Fatalf("through edge %d: %v", k, err)
	}
	h.beats(s)
	return s
}

// beats says one byte and hears it.
func (h *host) beats(s network.Stream) {
	h.s.t.Helper()
	if _, err := s.Write([]byte{1}); err != nil {
		h.s.t.Fatal(err)
	}
	if _, err := io.ReadFull(s, make([]byte, 1)); err != nil {
		h.s.t.Fatal(err)
	}
}

// breaks wants a stream to break off, and not to end.
func breaks(t *testing.T, what string, s network.Stream) {
	t.Helper()
	if b, err := io.ReadAll(s); err == nil {
		t.Errorf("%s: the stream ends, behind %q", what, b)
	}
}

func TestACircuitEndsWithEitherOfItsEdgesWithAReset(t *testing.T) {
	t.Parallel()
	s := open(t, setup{Options: agoratest.Options{Edges: 3}})
	to := s.enter()
	to.echoes()
	to.reserve(0)
	a, b := s.enter(), s.enter()
	one, two, near := a.kept(1, to.ID()), b.kept(2, to.ID()), s.enter().kept(0, to.ID())
	s.door(1).Close()
	breaks(t, "the caller's edge is gone", one)
	b.beats(two)
	s.door(0).Close()
	breaks(t, "the peer's edge is gone", two)
	breaks(t, "the only edge is gone", near)
	if _, err := s.enter().opens(2, to.ID(), echo); err == nil {
		t.Error("a peer is reached whose edge is gone")
	}
	to.reserve(2)
	await.True(t, "it is reached where it has reserved again", func() bool {
		st, err := s.enter().opens(2, to.ID(), echo)
		return err == nil && string(said(t, st, []byte("back"))) == "back"
	})
}

func TestWhoIsGoneIsNotReachedAtAnyEdge(t *testing.T) {
	t.Parallel()
	s := open(t, setup{Options: agoratest.Options{Edges: 2}})
	to := s.enter()
	for k := range 2 {
		if _, err := s.enter().opens(k, to.ID(), echo); err == nil || !strings.Contains(err.Error(), "NO_RESERVATION") {
			t.Errorf("without a reservation edge %d says %v", k, err)
		}
	}
	to.echoes()
	to.reserve(1)
	st := s.enter().kept(0, to.ID())
	if err := to.Close(); err != nil {
		t.Fatal(err)
	}
	breaks(t, "the peer is gone", st)
	for k := range 2 {
		await.True(t, "its reservation is over", func() bool {
			_, err := s.enter().opens(k, to.ID(), echo)
			return err != nil && strings.Contains(err.Error(), "NO_RESERVATION")
		})
	}
}

func TestWhatWasFoundOfLateIsServedWhilePresenceIsAway(t *testing.T) {
	t.Parallel()
	s := open(t, setup{Options: agoratest.Options{Edges: 2, Node: edge.Config{}}})
	near, far, unknown := s.enter(), s.enter(), s.enter()
	for k, h := range []*host{near, far, unknown} {
		h.echoes()
		h.reserve(min(k, 1))
	}
	s.enter().kept(0, far.ID())
	s.CutPresence(0)
	for name, h := range map[string]*host{"has a place here": near, "was found": far} {
		st, err := s.enter().opens(0, h.ID(), echo)
		if err != nil {
			t.Errorf("who %s: %v", name, err)
			continue
		}
		if got := said(t, st, []byte(name)); string(got) != name {
			t.Errorf("who %s says %q", name, got)
		}
	}
	if _, err := s.enter().opens(0, unknown.ID(), echo); err == nil || !strings.Contains(err.Error(), "CONNECTION_FAILED") {
		t.Errorf("who is not known: %v", err)
	}
	s.MendEdge(0)
	await.True(t, "everybody is reached again", func() bool {
		st, err := s.enter().opens(0, unknown.ID(), echo)
		return err == nil && string(said(t, st, []byte("x"))) == "x"
	})
}

func TestPresenceThatHasLostEverythingHearsOfReservationsAgain(t *testing.T) {
	t.Parallel()
	s := open(t, setup{Options: agoratest.Options{Edges: 2, Redis: true}})
	to := s.enter()
	to.echoes()
	to.reserve(1)
	s.enter().kept(0, to.ID())
	s.Redis.Stop()
	s.Redis.Start()
	late := s.enter()
	late.echoes()
	await.True(t, "a new one may reserve", func() bool { return late.tries(1) == nil })
	for _, h := range []*host{to, late} {
		await.True(t, "it is reached", func() bool {
			st, err := s.enter().opens(0, h.ID(), echo)
			return err == nil && string(said(t, st, []byte("x"))) == "x"
		})
	}
}

func TestHalfCloseAndResetPassThroughACircuit(t *testing.T) {
	t.Parallel()
	s := open(t, setup{Options: agoratest.Options{Edges: 2}})
	to := s.enter()
	to.SetStreamHandler(echo, func(st network.Stream) {
		if b, err := io.ReadAll(st); err != nil || string(b) == "no" {
			_ = st.Reset()
			return
		}
		_, _ = st.Write([]byte("behind its end"))
		_ = st.Close()
	})
	to.reserve(1)
	for k := range 2 {
		st, err := s.enter().opens(k, to.ID(), echo)
		if err != nil {
			t.Fatal(err)
		}
		if got := said(t, st, []byte("yes")); string(got) != "behind its end" {
			t.Errorf("through edge %d comes %q", k, got)
		}
		if st, err = s.enter().opens(k, to.ID(), echo); err != nil {
			t.Fatal(err)
		}
		if _, err := st.Write([]byte("no")); err != nil {
			t.Fatal(err)
		}
		if err := st.CloseWrite(); err != nil {
			t.Fatal(err)
		}
		if _, err := io.ReadAll(st); !errors.Is(err, network.ErrReset) {
			t.Errorf("through edge %d a reset comes as %v", k, err)
		}
	}
}
