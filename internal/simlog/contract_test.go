package simlog_test

import (
	"context"
	"net"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/nats-io/nats.go"

	"github.com/agora-relay/agora/broker/natsd"
	"github.com/agora-relay/agora/internal/await"
	"github.com/agora-relay/agora/internal/simlog"
)

// contract is what Agora relies on of a log, one case a sentence. What only a cluster shows, a case says what it may
// do.
var contract = []struct {
	about string
	holds func(*log)
}{
	{"what is stored is republished in order, and names the one before it", republishesInOrder},
	{"the one before is the last that is still kept", namesTheLastThatIsKept},
	{"a fence is stored and not republished", keepsFencesToItself},
	{"a record that comes again under its id is a duplicate and not republished", knowsDuplicates},
	{"an id is forgotten when its window is over", forgetsIDs},
	{"a record whose fence is elsewhere is refused", refusesBehindFences},
	{"a record that is stored may be refused when it comes again", mayRefuseWhatIsStored},
	{"a fence that ages out is none", agesFences},
	{"of two that expect nothing the first stands", keepsTheFirst},
	{"nothing of a past holder lands behind the fence", letsNothingPastAFence},
	{"its leader knows all that was acknowledged", leadersKnowAll},
	{"a batch is read in order, to its end", readsBatches},
	{"a batch ends early at its limits and says what is left", limitsBatches},
	{"a batch begins at a time", readsSince},
	{"last messages of many subjects are read at once", readsLasts},
	{"too many last messages are none", refusesManyLasts},
	{"its state tells what is kept and what time it is", tellsItsState},
	{"a purge drops what is before a sequence", purges},
	{"a subject drops its own oldest", dropsTheOldestOfASubject},
	{"a full stream refuses and drops nothing", refusesWhenFull},
	{"what is too old is dropped", dropsWhatIsOld},
	{"a stream begins at its first sequence and is made once", makesStreams},
	{"core messages reach who listens now", passesCoreMessages},
	{"nobody answers for what is not there", answersForNothingElse},
	{"records may be published without an answer", storesUnasked},
	{"who does not read is cut off and comes back", cutsOffWhoDoesNotRead},
	{"clients outlive that their server goes", disconnects},
	{"made anew it is empty", isEmptyWhenMadeAnew},
	{"a new leader has all that was acknowledged", changesLeaders},
	{"a replica that lags answers with a beginning", answersLate},
	{"a replica that lags still has what the leader has dropped", answersWhole},
	{"out of storage it refuses", runsOutOfStorage},
}

// log is a log that a case is run against.
type log struct {
	*testing.T
	url     string
	options []nats.Option // of a client, besides
	memory  bool          // streams are kept in memory
	nodes   int           // servers that have each stream
	shard   string        // of this case's streams
	cluster *natsd.Server // a real one, or nil
	dir     string        // where that keeps its files
	sim     *simlog.Log   // a simulated one, or nil
}

func TestTheContractOfOneServer(t *testing.T)    { runReal(t, 1) }
func TestTheContractOfThreeServers(t *testing.T) { runReal(t, 3) }

// runReal runs every case against real servers.
func runReal(t *testing.T, nodes int) {
	dir := t.TempDir()
	ctx, cancel := context.WithTimeout(t.Context(), await.Long)
	defer cancel()
	s, err := natsd.Embed(ctx, natsd.Config{Nodes: nodes, Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Shutdown)
	for k, c := range contract {
		t.Run(strings.ReplaceAll(c.about, " ", "_"), func(t *testing.T) {
			c.holds(&log{T: t, url: s.URL(), nodes: nodes, shard: strconv.Itoa(k), cluster: s, dir: dir})
		})
	}
}

// TestTheContractOfTheSimulation runs every case against the simulated log, each under a time of its own.
func TestTheContractOfTheSimulation(t *testing.T) {
	for k, c := range contract {
		t.Run(strings.ReplaceAll(c.about, " ", "_"), func(t *testing.T) {
			runtime.GC() // what libraries keep for another use belongs to the bubble where it was made
			runtime.GC()
			synctest.Test(t, func(t *testing.T) {
				s, err := simlog.Start(uint64(k))
				if err != nil {
					t.Fatal(err)
				}
				defer func() {
					if err := s.Stop(); err != nil {
						t.Error(err)
					}
				}()

				c.holds(&log{T: t, url: "nats://127.0.0.1:4222", options: []nats.Option{nats.SetCustomDialer(dialer{s})}, memory: true, nodes: 1, shard: "0", sim: s})
			})
		})
	}
}

// dialer connects to a simulated log.
type dialer struct{ log *simlog.Log }

// Dial implements nats.CustomDialer.
func (d dialer) Dial(string, string) (net.Conn, error) { return d.log.Dial(context.Background()) }
