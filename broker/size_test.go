package broker

import (
	"testing"
	"unsafe"

	"github.com/agora-relay/agora/internal/await"
)

// An edge listens to tens of thousands of addresses, of most of which nothing is heard: what only reading takes is to be had while it lasts.
func TestAnInboxIsSmall(t *testing.T) {
	const most = 400
	if size := unsafe.Sizeof(Inbox{}) + unsafe.Sizeof(subscription{}); size > most {
		t.Errorf("an inbox and its subject take %d bytes, want %d at most", size, most)
	}
}

// A sender may have thousands of lanes, each of which has had much in hand once.
func TestALaneWithNothingInHandKeepsNoRoomForMore(t *testing.T) {
	t.Parallel()
	b := testBroker(t, testServer(t, 1), nil)
	l := b.Lane(lane("s1", 1, false))
	defer l.Close()
	told := 0
	for range 300 { // more than one record holds
		l.Put(text("token"), func(Result) { told++ })
	}
	if err := l.Flush(await.Context(t)); err != nil {
		t.Fatalf("Flush: %v", err)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if told != 300 || l.queue.first != nil || l.inflight != nil || l.completions.first != nil {
		t.Errorf("%d of 300 are answered, and the lane keeps %v, %v and %v", told, l.queue.first, l.inflight, l.completions.first)
	}
}
