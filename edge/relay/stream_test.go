package relay

import (
	"strconv"
	"testing"

	"github.com/agora-relay/agora"
)

func TestRefusedStreamsAreRememberedUpToABound(t *testing.T) {
	var f fifo
	key := func(i int) streamKey { return streamKey{agora.ToAgent("t", "a"), strconv.Itoa(i)} }
	for i := range remembered + 10 {
		f.add(key(i))
		f.add(key(i)) // twice is once
	}
	if f.has(key(9)) || !f.has(key(10)) || !f.has(key(remembered+9)) {
		t.Errorf("has 9: %v, 10: %v, %d: %v; want the newest %d", f.has(key(9)), f.has(key(10)), remembered+9, f.has(key(remembered+9)), remembered)
	}
	if len(f.order) > remembered {
		t.Errorf("keeps %d, want at most %d", len(f.order), remembered)
	}
	f.remove(key(10))
	if f.has(key(10)) {
		t.Error("still has what was removed")
	}
}

func TestRequestsAndStreamsHaveNamesApart(t *testing.T) {
	if id, ok := requestID(requestStream("q")); !ok || id != "q" {
		t.Errorf("requestID(requestStream(q)) = %q, %v; want q, true", id, ok)
	}
	for _, stream := range []string{"", "q", "stream-1"} {
		if id, ok := requestID(stream); ok {
			t.Errorf("requestID(%q) = %q, true; want none", stream, id)
		}
	}
}
