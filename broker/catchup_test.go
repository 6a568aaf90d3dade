package broker

import (
	"slices"
	"testing"
)

func TestWhoMissedNothingReadsNothing(t *testing.T) {
	t.Parallel()
	b := testBroker(t, testServer(t, 1), nil)
	at := publish(t, b, "s1", names(0, 3)...)
	in := listen(t, b, bob, From{After: at[2]})
	if got := in.quiet(t); len(got) > 0 || b.Stats().Refills > 0 {
		t.Errorf("got %v in %d reads of the log", bodies(got), b.Stats().Refills)
	}
	publish(t, b, "s2", "live")
	if got := bodies(in.next(t)); !slices.Equal(got, []string{"live"}) {
		t.Errorf("then got %v", got)
	}
	// What came live is not read again, should the inbox have to read after all.
	in.mu.Lock()
	in.state = inboxLags
	in.mu.Unlock()
	if got := in.quiet(t); len(got) > 0 {
		t.Errorf("got %v again", bodies(got))
	}
	missed := listen(t, b, bob, From{After: at[0]})
	if got := bodies(missed.read(t, 3)); !slices.Equal(got, []string{"1", "2", "live"}) {
		t.Errorf("who missed three got %v", got)
	}
}

// A mailbox that nobody knows anything of is mostly a new agent's, and thousands of them come at once.
func TestAMailboxOfWhichNothingIsKnownIsReadOnlyWhereThereIsSomething(t *testing.T) {
	t.Parallel()
	b := testBroker(t, testServer(t, 1), nil)
	in := listen(t, b, bob, From{})
	if got := in.quiet(t); len(got) > 0 || b.Stats().Refills > 0 {
		t.Errorf("a new one: got %v in %d reads of the log", bodies(got), b.Stats().Refills)
	}
	publish(t, b, "s1", "live")
	if got := bodies(in.read(t, 1)); !slices.Equal(got, []string{"live"}) || b.Stats().Refills > 0 {
		t.Errorf("then got %v in %d reads of the log", got, b.Stats().Refills)
	}
	in.markLagging() // what came is not told again
	publish(t, b, "s2", "more")
	if got := bodies(in.read(t, 1)); !slices.Equal(got, []string{"more"}) {
		t.Errorf("behind it got %v", got)
	}
	late := listen(t, b, bob, From{})
	if got := bodies(late.read(t, 2)); !slices.Equal(got, []string{"live", "more"}) {
		t.Errorf("one that has something: got %v", got)
	}
}
