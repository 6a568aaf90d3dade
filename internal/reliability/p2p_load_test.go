package reliability

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/libp2p/go-libp2p/core/network"
	"github.com/libp2p/go-libp2p/core/peer"
	"github.com/libp2p/go-libp2p/p2p/protocol/circuitv2/client"
	ma "github.com/multiformats/go-multiaddr"

	"github.com/agora-relay/agora/internal/agoratest"
	"github.com/agora-relay/agora/internal/await"
	"github.com/agora-relay/agora/internal/p2phost"
	"github.com/agora-relay/agora/internal/pause"
)

// p2pStage is a cluster with peers that talk through circuits.
type p2pStage struct {
	*agoratest.Processes
	t       *testing.T
	ctx     context.Context
	stop    context.CancelFunc
	work    sync.WaitGroup
	called  []*p2phost.Host
	callers []*p2pCaller
	broken  atomic.Int64 // circuits that were reset
}

// p2pCaller says numbers to one who is called, and hears each again.
type p2pCaller struct {
	*p2phost.Host
	to    peer.ID
	first int          // the edge that it tries first
	heard atomic.Int64 // numbers
}

const echoes = "/numbers/1.0.0"

// startP2P has two peers be called at edge 0, each by a caller at every edge.
func startP2P(t *testing.T, c *agoratest.Processes) *p2pStage {
	t.Helper()
	s := &p2pStage{Processes: c, t: t}
	s.ctx, s.stop = context.WithCancel(context.Background())
	for range 2 {
		h := s.host(true)
		h.SetStreamHandler(echoes, func(st network.Stream) {
			if _, err := io.Copy(st, st); err != nil {
				_ = st.Reset()
				return
			}
			_ = st.Close()
		})
		s.called = append(s.called, h)
		s.work.Go(func() { s.keepsAPlace(h) })
		for k := range 3 {
			caller := &p2pCaller{Host: s.host(false), to: h.ID(), first: k}
			s.callers = append(s.callers, caller)
			s.work.Go(func() { s.calls(caller) })
		}
	}
	return s
}

func (s *p2pStage) host(reserves bool) *p2phost.Host {
	s.t.Helper()
	key, err := p2phost.NewKey()
	if err != nil {
		s.t.Fatal(err)
	}
	h, err := p2phost.New(p2phost.Config{Key: key, Reserves: reserves})
	if err != nil {
		s.t.Fatal(err)
	}
	return h
}

// end ends all peers, and returns when nothing of them runs.
func (s *p2pStage) end() {
	s.stop()
	for _, h := range s.called {
		_ = h.Close()
	}
	for _, c := range s.callers {
		_ = c.Close()
	}
	s.work.Wait()
}

// at returns how an edge is reached, as it says itself.
func (s *p2pStage) at(ctx context.Context, k int) (peer.AddrInfo, error) {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	url := "http" + strings.TrimPrefix(strings.TrimSuffix(s.Edges[k].URL(), "/ws"), "ws") + "/p2p"
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return peer.AddrInfo{}, err
	}
	resp, err := (&http.Transport{DisableKeepAlives: true}).RoundTrip(r)
	if err != nil {
		return peer.AddrInfo{}, err
	}
	defer resp.Body.Close()
	var list struct {
		Edges []struct{ Addresses []string }
	}
	if err := json.NewDecoder(resp.Body).Decode(&list); err != nil || len(list.Edges) == 0 {
		return peer.AddrInfo{}, fmt.Errorf("edge %d names no address: %v", k, err)
	}
	info, err := peer.AddrInfoFromString(list.Edges[0].Addresses[0])
	if err != nil {
		return peer.AddrInfo{}, err
	}
	return *info, nil
}

// keepsAPlace has a peer reserve a place at edge 0 wherever it can, else at the next one, again when it has lost its
// connection.
func (s *p2pStage) keepsAPlace(h *p2phost.Host) {
	for s.ctx.Err() == nil {
		for k := range 3 {
			ctx, cancel := context.WithTimeout(s.ctx, 5*time.Second)
			at, err := s.at(ctx, k)
			if err == nil {
				_, err = client.Reserve(ctx, h, at)
			}
			cancel()
			if err != nil {
				continue
			}
			for h.Network().Connectedness(at.ID) == network.Connected && pause.For(s.ctx, 50*time.Millisecond) {
			}
			break
		}
		pause.For(s.ctx, 100*time.Millisecond)
	}
}

// calls has a caller talk for as long as the stage stands, through another edge when one does not lead anywhere.
func (s *p2pStage) calls(c *p2pCaller) {
	for k := c.first; s.ctx.Err() == nil; k = (k + 1) % 3 {
		st, err := s.dials(c, k)
		if err != nil {
			pause.For(s.ctx, 50*time.Millisecond)
			continue
		}
		if err := s.talks(c, st); errors.Is(err, io.EOF) && s.ctx.Err() == nil {
			s.t.Errorf("a circuit through edge %d ends, and is not reset", k)
		}
		_ = st.Reset()
		s.broken.Add(1)
		_ = c.Network().ClosePeer(c.to)
	}
}

func (s *p2pStage) dials(c *p2pCaller, k int) (network.Stream, error) {
	ctx, cancel := context.WithTimeout(network.WithAllowLimitedConn(s.ctx, "reliability"), 10*time.Second)
	defer cancel()
	at, err := s.at(ctx, k)
	if err != nil {
		return nil, err
	}
	through := at.Addrs[0].Encapsulate(ma.StringCast("/p2p/" + at.ID.String() + "/p2p-circuit"))
	c.Peerstore().ClearAddrs(c.to)
	if err := c.Connect(ctx, peer.AddrInfo{ID: c.to, Addrs: []ma.Multiaddr{through}}); err != nil {
		return nil, err
	}
	return c.NewStream(ctx, c.to, echoes)
}

// talks says numbers and hears each again, until the stream fails. io.EOF is the error of one that ends.
func (s *p2pStage) talks(c *p2pCaller, st network.Stream) error {
	var said, heard [8]byte
	for n := uint64(1); s.ctx.Err() == nil; n++ {
		binary.BigEndian.PutUint64(said[:], n)
		_ = st.SetDeadline(time.Now().Add(await.Long)) // what is over fails to be written
		if _, err := st.Write(said[:]); err != nil {
			return err
		}
		if _, err := io.ReadFull(st, heard[:]); err != nil {
			return err
		}
		if got := binary.BigEndian.Uint64(heard[:]); got != n {
			s.t.Errorf("%d comes back as %d", n, got)
			return nil
		}
		c.heard.Add(1)
		pause.For(s.ctx, 10*time.Millisecond)
	}
	return nil
}

// through returns the callers that try some edges first.
func (s *p2pStage) through(edges ...int) (all []*p2pCaller) {
	for _, c := range s.callers {
		for _, k := range edges {
			if c.first == k {
				all = append(all, c)
			}
		}
	}
	return all
}

// progress returns when every caller has heard so many numbers more.
func (s *p2pStage) progress(n int64) {
	s.t.Helper()
	s.progressOf(n, s.callers)
}

func (s *p2pStage) progressOf(n int64, callers []*p2pCaller) {
	s.t.Helper()
	for _, c := range callers {
		from := c.heard.Load()
		await.True(s.t, fmt.Sprintf("a caller that tried edge %d first hears more", c.first), func() bool { return c.heard.Load() >= from+n })
	}
}
