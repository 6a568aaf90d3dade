package aip_test

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/encoding/gzip"
	"google.golang.org/grpc/health/grpc_health_v1"

	"github.com/agora-relay/agora/edge"
	"github.com/agora-relay/agora/edge/admission"
	"github.com/agora-relay/agora/internal/agoratest"
	"github.com/agora-relay/agora/internal/await"
	wire "github.com/agora-relay/agora/wire/aip"
)

// unfinished is a connection over which calls are begun whose messages don't come to their end.
type unfinished struct {
	t     *testing.T
	conn  net.Conn
	frame *http2.Framer
	last  uint32
	block bytes.Buffer
	head  *hpack.Encoder
	back  *hpack.Decoder
	said  map[uint32]string // grpc-status, by stream
	of    uint32            // whose header is decoded
}

func (s *site) unfinished(k int) *unfinished {
	s.t.Helper()
	t := s.t.(*testing.T)
	c, err := net.Dial("tcp", s.addr(k))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	c.SetDeadline(time.Now().Add(await.Long))
	u := &unfinished{t: t, conn: c, frame: http2.NewFramer(c, c), said: map[uint32]string{}, last: 1}
	u.head = hpack.NewEncoder(&u.block)
	u.back = hpack.NewDecoder(4096, func(f hpack.HeaderField) {
		if f.Name == "grpc-status" {
			u.said[u.of] = f.Value
		}
	})
	if _, err := io.WriteString(c, http2.ClientPreface); err != nil {
		t.Fatal(err)
	}
	if err := u.frame.WriteSettings(); err != nil {
		t.Fatal(err)
	}
	return u
}

// begin calls a method with the beginning of a message that says that it has so many bytes, and returns its stream.
func (u *unfinished) begin(method, token string, says uint32, has int) uint32 {
	u.t.Helper()
	stream := u.last
	u.last += 2
	u.block.Reset()
	fields := []string{":method", "POST", ":scheme", "http", ":path", method, ":authority", "a", "content-type", "application/grpc", "te", "trailers"}
	if token != "" {
		fields = append(fields, "authorization", "Bearer "+token)
	}
	for k := 0; k < len(fields); k += 2 {
		u.head.WriteField(hpack.HeaderField{Name: fields[k], Value: fields[k+1]})
	}
	b := make([]byte, 5+has)
	binary.BigEndian.PutUint32(b[1:], says)
	err := u.frame.WriteHeaders(http2.HeadersFrameParam{StreamID: stream, BlockFragment: u.block.Bytes(), EndHeaders: true})
	for len(b) > 0 && err == nil {
		n := min(len(b), 16<<10) // what a frame may have
		err = u.frame.WriteData(stream, false, b[:n])
		b = b[n:]
	}
	if err != nil {
		u.t.Fatal(err)
	}
	return stream
}

// status returns the status with which a call ends.
func (u *unfinished) status(stream uint32) string {
	u.t.Helper()
	for {
		if s, ok := u.said[stream]; ok {
			return s
		}
		f, err := u.frame.ReadFrame()
		if err != nil {
			u.t.Fatalf("stream %d: %v", stream, err)
		}
		if h, is := f.(*http2.HeadersFrame); is {
			u.of = h.StreamID
			if _, err := u.back.Write(h.HeaderBlockFragment()); err != nil {
				u.t.Fatal(err)
			}
		}
	}
}

// TestNoMessageIsReadOfACallerThatIsNotLetIn begins a message at every method that the door offers and does not finish
// it. A stranger hears that credentials are missing, and at the few methods that need none that the message is too
// large.
func TestNoMessageIsReadOfACallerThatIsNotLetIn(t *testing.T) {
	t.Parallel()
	s := open(t, setup{Options: agoratest.Options{Node: edge.Config{Auth: folk{}}}})
	anybody := map[string]bool{"/grpc.health.v1.Health/Check": true, "/grpc.health.v1.Health/List": true, "/grpc.health.v1.Health/Watch": true, "/agora.aip.Node/Identify": true}
	seen := 0
	for name, service := range s.door(0).Services() {
		for _, m := range service.Methods {
			method, want := "/"+name+"/"+m.Name, fmt.Sprint(int(codes.Unauthenticated))
			if anybody[method] {
				seen++
				want = fmt.Sprint(int(codes.ResourceExhausted))
			}
			u := s.unfinished(0)
			for _, token := range []string{"", "wrong"} {
				if got := u.status(u.begin(method, token, 16<<20-10, 1000)); got != want {
					t.Errorf("%s with token %q: status %s, want %s", method, token, got, want)
				}
			}
		}
	}
	if seen != len(anybody) {
		t.Errorf("%d methods need no credentials, want %d", seen, len(anybody))
	}
}

// The messages of strangers count among the bytes of strangers, and their calls have places there; others are served
// meanwhile.
func TestUnfinishedMessagesOfStrangersCount(t *testing.T) {
	t.Parallel()
	s := open(t, setup{Options: agoratest.Options{Node: edge.Config{Auth: folk{}}}})
	strangers := s.Node(0).Shedder().Strangers()
	u := s.unfinished(0)
	for range 10 {
		u.begin("/grpc.health.v1.Health/Check", "", 4<<10, 3<<10)
	}
	await.True(t, "they count", func() bool {
		return strangers.Stats().Places.Load() == 10 && strangers.Held() == 10*4<<10
	})
	if _, err := s.gateway(0, "t/p").GetNodes(t.Context(), &wire.GetNodesRequest{}); err != nil {
		t.Errorf("who has credentials: %v", err)
	}
	u.conn.Close()
	await.True(t, "nobody counts any more", func() bool { return strangers.Stats().Places.Load() == 0 && strangers.Held() == 0 })
}

// A stranger that watches keeps a place, and gives it to the next one.
func TestStrangersThatWatchGiveWay(t *testing.T) {
	t.Parallel()
	s := open(t, setup{Options: agoratest.Options{Node: edge.Config{Auth: folk{}}}})
	strangers := s.Node(0).Shedder().Strangers()
	_, places, _ := strangers.Limits()
	c := grpc_health_v1.NewHealthClient(dial(t, s.addr(0), ""))
	first, err := c.Watch(await.Context(t), new(grpc_health_v1.HealthCheckRequest))
	if err == nil {
		_, err = first.Recv()
	}
	if err != nil {
		t.Fatal(err)
	}
	for range places/4 + 1 { // an address has a quarter of them
		if _, err := c.Watch(await.Context(t), new(grpc_health_v1.HealthCheckRequest)); err != nil {
			t.Fatal(err)
		}
	}
	if _, err = first.Recv(); err == nil {
		_, err = first.Recv()
	}
	refused(t, "the first that watches", err, codes.Unavailable, "")
	if n := strangers.Stats().Places.Load(); n > int64(places/4) {
		t.Errorf("one address has %d places, want %d at most", n, places/4)
	}
}

// What is held of unfinished messages of callers with credentials stays within half of limits.queued: who would hold
// more is refused, and others are served.
func TestUnfinishedMessagesOfAPrincipalAreBounded(t *testing.T) {
	t.Parallel()
	const queued, most = 16 << 20, 8 << 20
	limits := admission.Limits{Queued: queued}
	s := open(t, setup{Options: agoratest.Options{Node: edge.Config{Auth: folk{}, Limits: limits}}})
	usage := s.Node(0).Usage()
	var all []*unfinished
	for range 4 {
		u := s.unfinished(0)
		all = append(all, u)
		for range 50 { // as much as the window of a connection takes at once
			u.begin("/grpc_service.GatewayService/GetNodes", "t/mall", 8<<20, 60<<10)
		}
		await.True(t, "they are there, or refused", func() bool { return usage.All(admission.RequestBytes) >= min(int64(len(all))*50<<16, most*3/4) })
	}
	if got := all[3].status(99); got != fmt.Sprint(int(codes.ResourceExhausted)) {
		t.Errorf("the last is answered %s, want RESOURCE_EXHAUSTED", got)
	}
	if held := usage.All(admission.RequestBytes); held > most || held < most/2 {
		t.Errorf("%d bytes are held, want %d at most", held, most)
	}
	for _, token := range []string{"t/alice", "acme/mall"} {
		if _, err := s.gateway(0, token).GetNodes(t.Context(), &wire.GetNodesRequest{Domain: strings.Repeat("x", 100<<10)}); err != nil {
			t.Errorf("%s: %v", token, err)
		}
	}
	for _, u := range all {
		u.conn.Close()
	}
	await.True(t, "nothing is held", func() bool { return usage.All(admission.RequestBytes) == 0 })
}

// What a message becomes counts, not what it was compressed to.
func TestACompressedMessageIsBoundedByWhatItBecomes(t *testing.T) {
	t.Parallel()
	s := open(t, setup{Options: agoratest.Options{Node: edge.Config{Auth: folk{}}}})
	c := wire.NewGatewayServiceClient(dial(t, s.addr(0), "t/p"))
	for size, want := range map[int]codes.Code{1 << 20: codes.OK, 17 << 20: codes.ResourceExhausted} {
		_, err := c.GetNodes(t.Context(), &wire.GetNodesRequest{Domain: strings.Repeat("x", size)}, grpc.UseCompressor(gzip.Name))
		if want != codes.OK {
			refused(t, "a large one", err, want, "")
		} else if err != nil {
			t.Errorf("%d bytes: %v", size, err)
		}
	}
	await.True(t, "nothing is held", func() bool { return s.Node(0).Usage().All(admission.RequestBytes) == 0 })
}
