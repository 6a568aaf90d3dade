package broker

import (
	"slices"
	"testing"

	"github.com/agora-relay/agora/internal/await"
)

// Who must not wait takes what is queued, and learns where only Next continues.
func TestTakeDoesNotReadTheLog(t *testing.T) {
	t.Parallel()
	b := testBroker(t, testServer(t, 1), nil)
	publish(t, b, "s1", "old")
	in := listen(t, b, bob, From{})
	for range 2 {
		if msgs, more := in.Take(1 << 10); len(msgs) > 0 || !more {
			t.Fatalf("of what is in the log alone Take gave %v, and says there is more: %v", bodies(msgs), more)
		}
	}
	if got := bodies(in.read(t, 1)); !slices.Equal(got, []string{"old"}) {
		t.Fatalf("Next gave %v, want what is in the log", got)
	}
	in.quiet(t)
	publish(t, b, "s1", "new")
	live, more := in.Take(1 << 10)
	for len(live) == 0 {
		if more { // it was late: an audit has found it in the log before
			in.quiet(t)
			publish(t, b, "s1", "new")
		} else {
			await.Recv(t, "a live record wakes its listener", in.woken) // or an earlier thing did
		}
		live, more = in.Take(1 << 10)
	}
	if !slices.Equal(bodies(live), []string{"new"}) || in.Stamp() == 0 {
		t.Fatalf("of what came live Take gave %v, stored at %d", bodies(live), in.Stamp())
	}
	if msgs, more := in.Take(1 << 10); len(msgs) > 0 || more || in.Stamp() != 0 {
		t.Errorf("of nothing Take gave %v, and says there is more: %v", bodies(msgs), more)
	}
	publish(t, b, "s1", "newer") // Take says that there is nothing as Next does: then something wakes
	await.Recv(t, "what comes wakes its listener", in.woken)
	if got := bodies(in.read(t, 1)); !slices.Equal(got, []string{"newer"}) {
		t.Errorf("Next gave %v, want what came after Take had nothing", got)
	}
}
