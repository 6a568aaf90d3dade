package p2p_test

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/iotest"
	"time"

	"github.com/libp2p/go-libp2p/core/network"

	"github.com/agora-relay/agora/edge/p2p"
	"github.com/agora-relay/agora/internal/agoratest"
	wire "github.com/agora-relay/agora/wire/p2p"
)

// worker has a peer be an agent "worker", whose paths say what it does.
func (s *site) worker(k int) *host {
	s.t.Helper()
	return s.works(k, "worker")
}

// works is worker for an agent of any name.
func (s *site) works(k int, name string) *host {
	s.t.Helper()
	h := s.enter()
	h.SetStreamHandler(wire.HandoffProtocol, func(st network.Stream) {
		q, err := wire.Read(st, 0)
		switch {
		case err != nil:
			_, _ = st.Write(wire.AppendFault(nil, err))
		case q.Path == "/silent":
			<-s.t.Context().Done()
			_ = st.Reset()
			return
		case q.Path == "/breaks":
			_, _ = io.WriteString(st, strings.Repeat("half ", 100_000))
			_ = st.Reset()
			return
		case q.Path == "/large":
			_, _ = io.CopyN(st, endless{}, 4<<20)
		case q.Path == "/empty":
		case q.Path == "/bytes":
			_, _ = st.Write([]byte{0xff, 0, 0xfe})
		default:
			_, _ = st.Write(q.Append(nil))
		}
		_ = st.Close()
	})
	h.reserve(k)
	if status, answer := s.posts(k, "/register", fmt.Sprintf(`{"agent_name":%q,"peer_id":%q,"addrs":[]}`, name, h.ID())); status != http.StatusOK {
		s.t.Fatalf("%d %s", status, answer)
	}
	return h
}

// endless has no end.
type endless struct{}

func (endless) Read(b []byte) (int, error) {
	for i := range b {
		b[i] = 'x'
	}
	return len(b), nil
}

func TestAHandoffIsAsLargeAndSlowAsItMayBe(t *testing.T) {
	t.Parallel()
	s := open(t, setup{Options: agoratest.Options{Edges: 2}, door: p2p.Config{Handoff: p2p.Handoff{
		Request: 4 << 10, Within: 300 * time.Millisecond, FirstByte: 2 * time.Second, Idle: 2 * time.Second, Answer: 1 << 20,
	}}})
	s.worker(1)
	h := s.enter()
	for k := range 2 {
		for q, code := range map[string]int{
			`{"method":"GET","path":"/agents/worker/silent"}`:                                              504,
			`{"method":"GET","path":"/agents/worker/x","input_data":"` + strings.Repeat("x", 5<<10) + `"}`: 413,
		} {
			if got := asks(t, h.edge(k, wire.HandoffProtocol), q); !strings.Contains(got, fmt.Sprintf(`"code":%d`, code)) {
				t.Errorf("at edge %d %.60s is answered %s, want %d", k, q, got, code)
			}
		}
		half := h.edge(k, wire.HandoffProtocol)
		if _, err := io.WriteString(half, `{"method":"GET",`); err != nil {
			t.Fatal(err)
		}
		if got, err := io.ReadAll(half); err != nil || !strings.Contains(string(got), `"code":408`) {
			t.Errorf("at edge %d half a request is answered %s, %v", k, got, err)
		}
		for _, path := range []string{"/breaks", "/large"} {
			st := h.edge(k, wire.HandoffProtocol)
			if _, err := io.WriteString(st, `{"method":"GET","path":"/agents/worker`+path+`"}`); err != nil {
				t.Fatal(err)
			}
			got, err := io.ReadAll(st)
			if path == "/breaks" && strings.Contains(string(got), `"code":502}`) {
				continue // of its answer nothing had come yet
			}
			if !errors.Is(err, network.ErrReset) {
				t.Errorf("at edge %d %s ends behind %d bytes with %v", k, path, len(got), err)
			}
		}
		if got := asks(t, h.edge(k, wire.HandoffProtocol), `{"method":"GET","path":"/agents/worker/empty"}`); got != "" {
			t.Errorf("at edge %d nothing comes as %q", k, got)
		}
		if got := asks(t, h.edge(k, wire.HandoffProtocol), `{"method":"GET","path":"/agents/worker/bytes"}`); got != "\xff\x00\xfe" {
			t.Errorf("at edge %d bytes come as %q", k, got)
		}
	}
}

func TestManyHandOffAtOnceHoweverTheyWrite(t *testing.T) {
	t.Parallel()
	s := open(t, setup{Options: agoratest.Options{Edges: 2}})
	s.worker(1)
	h := s.enter()
	var all sync.WaitGroup
	for k := range 50 {
		all.Go(func() {
			st := h.edge(k%2, wire.HandoffProtocol)
			defer st.Close()
			want := fmt.Sprintf(`{"method":"POST","path":"/p/%d","params":{"a":%d},"input_data":[%d, 1.0]}`, k, k, k)
			q := strings.Replace(want, `"/p/`, `"/agents/worker/p/`, 1)
			if _, err := io.Copy(st, iotest.OneByteReader(strings.NewReader(q))); err != nil {
				t.Error(err)
			}
			if k%3 == 0 {
				_ = st.CloseWrite()
			}
			if got, err := io.ReadAll(st); err != nil || string(got) != want {
				t.Errorf("%s, %v, want %s", got, err, want)
			}
		})
	}
	all.Wait()
}
