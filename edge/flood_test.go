package edge_test

import (
	"fmt"
	"net/http"
	"net/netip"
	"net/url"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/agora-relay/agora/edge"
	"github.com/agora-relay/agora/edge/admission"
	"github.com/agora-relay/agora/internal/agoratest"
	"github.com/agora-relay/agora/internal/await"
)

// heap returns the bytes in use.
func heap() int64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// flood says many frames and takes every answer, each of which must be one of those wanted; it returns how many of each
// came.
func flood(t *testing.T, c *agoratest.Client, n int, frame func(k int) string, wanted ...string) []int {
	t.Helper()
	counts := make([]int, len(wanted))
	const ahead = 50
	for k := range n + ahead {
		if k < n {
			c.Send(frame(k))
		}
		if k < ahead {
			continue
		}
		f := c.Take("an answer")
		known := false
		for i, w := range wanted {
			if f.Match(w) == "" {
				counts[i]++
				known = true
				break
			}
		}
		if !known {
			t.Fatalf("answered %s, want one of %q", f, wanted)
		}
	}
	return counts
}

// unharmed has two agents of another tenant talk meanwhile, and wants every message.
func unharmed(t *testing.T, a, b *agoratest.Client) (stop func()) {
	t.Helper()
	over, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		for k := 0; ; k++ {
			select {
			case <-over:
				return
			case <-time.After(20 * time.Millisecond): // between two messages
			}
			if a.Try(fmt.Sprintf(`{"type":"send","to":"victim","payload":%d}`, k)) != nil {
				t.Error("the connection of a bystander is gone")
				return
			}
			if f, ok := b.Next(await.Long); !ok || f.Match(fmt.Sprintf(`{"type":"message","payload":%d}`, k)) != "" {
				t.Errorf("a bystander's message %d arrived as %s", k, f)
				return
			}
		}
	}()
	stop = sync.OnceFunc(func() { close(over); <-done })
	t.Cleanup(stop)
	return stop
}

func TestFloodsOfOneTenantAreRefusedInBoundedMemoryAndHarmNobodyElse(t *testing.T) {
	if testing.Short() {
		t.Skip("left to make test")
	}
	const n, rate = 1500, 100
	c := start(t, agoratest.Options{Edges: 2, Node: edge.Config{Auth: byWord{}, Limits: admission.Limits{
		Streams: 16, Spaces: 8, TenantRate: rate,
	}}})
	mallory := as(t, c, 0, "evil mallory", "mallory")
	as(t, c, 1, "evil sink", "sink")
	stop := unharmed(t, as(t, c, 0, "good a", "bystander"), as(t, c, 1, "good b", "victim"))
	refused := `{"type":"error","code":"RATE_LIMITED"}`
	for about, x := range map[string]struct {
		frame func(int) string
		taken string
		most  int
	}{
		"messages": {func(k int) string { return fmt.Sprintf(`{"type":"send","id":"m%d","to":"sink","payload":%d}`, k, k) }, `{"type":"receipt"}`, n},
		"streams": {func(k int) string {
			return fmt.Sprintf(`{"type":"send","id":"s%d","to":"sink","stream_id":"s%d","stream":true}`, k, k)
		}, `{"type":"receipt"}`, 16},
		"spaces": {func(k int) string { return fmt.Sprintf(`{"type":"space.join","id":"j","space":"s%d"}`, k) }, `{"type":"space.joined"}`, 8},
	} {
		begin := time.Now()
		flood(t, mallory, 200, x.frame, x.taken, refused)
		before := heap()
		got := flood(t, mallory, n, func(k int) string { return x.frame(k + 200) }, x.taken, refused)
		most := min(x.most, rate*(2+int(time.Since(begin)/time.Second))) // a second's worth at once
		if got[0] > most {
			t.Errorf("of %d %s %d were taken and %d refused, want %d taken at most", n, about, got[0], got[1], most)
		}
		if grown := heap() - before; grown > 2<<20 {
			t.Errorf("%d %s that are refused keep %d bytes", n, about, grown)
		}
	}
	stop()
	var list agoratest.Frame
	await.True(t, "the tenant's rate is there again", func() bool {
		mallory.Send(`{"type":"space.list","id":"l"}`)
		for list = mallory.Take("the list"); list.Type() != "space.list" && list.Match(refused) != ""; list = mallory.Take("the list") {
		}
		return list.Type() == "space.list"
	})
	if strings.Count(string(list), `"public"`) > 8 {
		t.Errorf("refused joins have made spaces: %.300s", list)
	}
}

// A flood of connections from one network reaches nothing that others need, wherever it claims to come from.
func TestAFloodOfConnectionsUsesUpItsOwnShareAlone(t *testing.T) {
	trusted := new(edge.Proxies)
	trusted.Set([]netip.Prefix{netip.MustParsePrefix("127.0.0.1/32")})
	c := start(t, agoratest.Options{Edges: 1, Node: edge.Config{Auth: byWord{}, Proxies: trusted, Limits: admission.Limits{
		PerIP: 10, PerPrincipal: 20, HandshakesPerIP: 50,
	}}})
	from := func(address, token string) int {
		t.Helper()
		_, r, err := agoratest.TryConnect(t, agoratest.Direct{}, c.URL(0), url.Values{"token": {token}}.Encode(), http.Header{"X-Forwarded-For": {address}})
		if err != nil && r == nil {
			t.Fatal(err)
		}
		return r.StatusCode
	}
	count := map[int]int{}
	for k := range 150 { // each host of one network pretends to be a proxy of another client
		count[from(fmt.Sprintf("203.0.113.%d, 2001:db8:1:2::%x", k, k+1), "evil mallory")]++
	}
	if count[http.StatusSwitchingProtocols] != 10 || count[http.StatusTooManyRequests] != 140 {
		t.Errorf("answered %v, want 10 connections", count)
	}
	for k := range 15 { // the same party from elsewhere
		count[from(fmt.Sprintf("198.51.100.%d", k), "evil mallory")]++
	}
	if count[http.StatusSwitchingProtocols] != 20 {
		t.Errorf("answered %v, want 20 connections of one principal", count)
	}
	if status := from("192.0.2.1", "good a"); status != http.StatusSwitchingProtocols {
		t.Errorf("somebody else: %d, want 101", status)
	}
}
