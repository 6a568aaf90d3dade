package edge_test

import (
	"fmt"
	"testing"

	"github.com/agora-relay/agora/internal/agoratest"
)

// named is what an agent may name as its position that is none of its own: seq of the receipts of what it, or another
// one, has sent.
func named(t *testing.T, c *agoratest.Cluster, count int) (seqs []uint64) {
	t.Helper()
	sender, _ := registered(t, c, 0, "sender")
	for k := range count {
		id := fmt.Sprint("other-", k)
		registered(t, c, 0, id)
		sender.Send(numbered(id, 1))
		seqs = append(seqs, sender.Expect(`{"type":"receipt","n":1,"status":"stored"}`).Seq())
	}
	return seqs
}

// Whatever position an agent names, what it was never given comes: where another mailbox's would hide it, behind a gap.
func TestAPositionThatIsAnotherMailboxsHidesNothing(t *testing.T) {
	t.Parallel()
	for _, shards := range []int{1, 4} {
		t.Run(fmt.Sprint(shards, " shards"), func(t *testing.T) {
			t.Parallel()
			c := start(t, agoratest.Options{Shards: shards})
			writer, _ := registered(t, c, 1, "writer")
			lasts, tokens := map[string]uint64{}, map[string]string{}
			for k := range 12 {
				id := fmt.Sprint("a", k)
				a, welcome := registered(t, c, 0, id)
				stored(writer, id, 1)
				lasts[id], tokens[id] = got(a, 1).Seq(), token(welcome)
				a.Drop()
				for n := 2; n <= 4; n++ {
					stored(writer, id, n)
				}
			}
			hides := 0
			for k, seq := range named(t, c, 12) {
				id := fmt.Sprint("a", k)
				last := lasts[id]
				a, welcome := registered(t, c, k%3, id, tokens[id], after(seq))
				if on := welcome.Uint("last_seq"); on > last {
					t.Errorf("delivery goes on after %d, and nothing behind %d was ever given", on, last)
				}
				f := a.Take("what comes first")
				if f.Type() == "gap" {
					if hides++; f.Uint("to_seq") > last {
						t.Errorf("%s, and nothing behind %d is missing", f, last)
					}
					f = a.Take("what comes behind the gap")
				}
				first := int(f.Uint("payload"))
				if first > 2 {
					t.Errorf("after seq %d comes %s, and 2 was never given", seq, f)
				}
				for n := first + 1; n <= 4; n++ {
					got(a, n)
				}
				a.Barrier()
			}
			if hides == 0 {
				t.Error("no position would have hidden anything")
			}
			for _, f := range writer.Pending() {
				t.Errorf("the writer is told %s, and the agent has named no position that it was given", f)
			}
		})
	}
}

// A position of a space that is another log's hides none of its events, at a registration and at a join.
func TestAPositionThatIsAnotherLogsHidesNoEvent(t *testing.T) {
	t.Parallel()
	for _, shards := range []int{1, 4} {
		t.Run(fmt.Sprint(shards, " shards"), func(t *testing.T) {
			t.Parallel()
			c := start(t, agoratest.Options{Shards: shards})
			writer, _ := registered(t, c, 1, "writer")
			writer.Send(`{"type":"space.join","id":"j","space":"s"}`)
			writer.Expect(`{"type":"space.joined"}`)
			publish := func(n int) {
				writer.Send(fmt.Sprintf(`{"type":"space.publish","space":"s","n":%d,"data":{"text":"%d"}}`, n, n))
				writer.Await(fmt.Sprintf(`{"type":"receipt","space":"s","n":%d}`, n))
			}
			event := func(m *agoratest.Client, n int) agoratest.Frame {
				return m.Await(fmt.Sprintf(`{"type":"space.event","data":{"from":"writer","text":"%d","timestamp":"<any>"}}`, n))
			}
			members := make([]*agoratest.Client, 12)
			tokens := map[int]string{}
			for k := range members {
				a, welcome := registered(t, c, 0, fmt.Sprint("a", k))
				a.Send(`{"type":"space.join","id":"j","space":"s"}`)
				a.Await(`{"type":"space.joined"}`)
				members[k], tokens[k] = a, token(welcome)
			}
			publish(1)
			var last uint64
			for _, a := range members {
				last = event(a, 1).Seq()
				a.Send(fmt.Sprintf(`{"type":"ack","space":"s","seq":%d}`, last))
				a.Barrier()
				a.Drop()
			}
			for n := 2; n <= 4; n++ {
				publish(n)
			}
			others := named(t, c, len(members))
			for k, seq := range others {
				a, _ := registered(t, c, k%3, fmt.Sprint("a", k), tokens[k], fmt.Sprintf(`"spaces":{"s":%d}`, seq))
				for n := 2; n <= 4; n++ {
					event(a, n)
				}
			}
			late, _ := registered(t, c, 2, "late")
			for k, seq := range others {
				id := fmt.Sprint("join-", k)
				late.Send(fmt.Sprintf(`{"type":"space.join","id":"%s","space":"s","last_seq":%d}`, id, seq))
				if on := late.Await(fmt.Sprintf(`{"type":"space.joined","id":"%s"}`, id)).Seq(); on > last {
					t.Errorf("joined at %d, named %d, and events behind %d were never given", on, seq, last)
				}
				for n := 2; n <= 4; n++ {
					event(late, n)
				}
			}
		})
	}
}
