package p2p_test

import (
	"bytes"
	"io"
	"testing"

	"github.com/libp2p/go-libp2p/core/network"
	"github.com/libp2p/go-libp2p/core/protocol"

	"github.com/agora-relay/agora/internal/agoratest"
)

const echo = protocol.ID("/echo/1.0.0")

// echoes has a peer say again what it is said, until the end of that.
func (h *host) echoes() {
	h.SetStreamHandler(echo, func(s network.Stream) {
		if _, err := io.Copy(s, s); err != nil {
			_ = s.Reset()
			return
		}
		_ = s.Close()
	})
}

// said says something to who echoes, and returns what comes back.
func said(t *testing.T, s network.Stream, what []byte) []byte {
	t.Helper()
	go func() {
		if _, err := s.Write(what); err == nil {
			_ = s.CloseWrite()
		}
	}()
	got, err := io.ReadAll(s)
	if err != nil {
		t.Fatal(err)
	}
	return got
}

func TestAPeerIsReachedThroughEveryEdgeWhereverItHasReserved(t *testing.T) {
	t.Parallel()
	s := open(t, setup{Options: agoratest.Options{Edges: 3}})
	to := s.enter()
	to.echoes()
	to.reserve(0)
	what := bytes.Repeat([]byte("0123456789abcdef"), 64<<10)
	for k := range 3 {
		from := s.enter()
		st, err := from.opens(k, to.ID(), echo)
		if err != nil {
			t.Fatalf("through edge %d: %v", k, err)
		}
		if got := said(t, st, what); !bytes.Equal(got, what) {
			t.Errorf("through edge %d come %d bytes, want %d", k, len(got), len(what))
		}
		_ = from.Close()
	}
}
