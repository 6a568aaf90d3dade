//go:build chaos

package guard

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// need is a test that fails where protections are left out, and what it says then. With them it passes: it is one of
// its package's own tests.
type need struct {
	off  string // the protections, comma-separated: more than one where they stand in for each other
	pkg  string // below the module
	test string // its name
	says string // a regular expression
}

var needs = []need{
	{"nudge", "broker", "TestADuplicateIsNotHandedOnAgainAndItsReceiverIsNudged", `in vain: got \[\], want 1 messages`},
	{"audit", "broker", "TestASilentTailIsFoundOnceTheLeaderIsBack", `in vain: got \[\], want 1 messages`},
	{"gap", "broker", "TestARecordDroppedOnItsWayIsReadFromTheLog", `in vain: got \[\], want 1 messages`},
	{"retry", "broker", "TestARetryThatWasADuplicateNudges", `in vain: the record without an answer is sent again`},
	{"msgid", "broker", "TestARetryThatWasADuplicateNudges", `got \[1 2 2\]`},
	{"number", "broker/ledger", "TestWhatMayFollow", `stored, want again`},
	{"name", "broker/ledger", "TestWhatMayFollow", `ID:a N:0 .*: stored, want again`},
	{"order", "broker/ledger", "TestARecordThatIsNotStoredLeavesNoTrace", `number 4 overtakes number 3`},
	{"fence", "broker", "TestADelayedRecordOfADeadEdgeLandsBehindItsSuccessor", `the log reads \[1 2 3 2\], want \[1 2 3\]`},
	{"epoch", "broker", "TestAZombieIsRefusedBehindTheFence", `want code UNAVAILABLE`},
	{"clock", "broker", "TestEdgesWhoseClocksAreHoursApartLoseNothing", `in vain: got \[.*\], want 60 messages`},
	{"gone", "edge", "TestACancelOfAStreamThatDiedWithItsEdgeIsAnswered", `nothing came .*agent\.registered`},
	{"settle", "edge", "TestAHolderThatStillRenewsIsNeverTakenForGone", `got .*agent\.registered.*, want nothing`},
	{"lease", "edge", "TestAnEdgeWhoseIDAnotherHasTakenEndsItsServiceAndSaysSo", `in vain: the first edge is not ready`},
	{"drain", "edge", "TestAnAgentThatIsSentOnByADrainedEdgeMissesNothing", `nothing came .*agent\.reconnect`},
	{"cursor", "edge", "TestAnAgentThatIsSentOnByADrainedEdgeMissesNothing", `nothing came .*"payload":1`},
	{"assert", "edge", "TestAStreamBeginsAndOthersGoOnRightAfterRedisHasLostTheClaim", `got .*UNAVAILABLE.*\n\s*want .*"n":2`},
	{"look", "edge", "TestAStreamBeginsAndOthersGoOnRightAfterRedisHasLostTheClaim", `got .*UNAVAILABLE.*\n\s*want .*"n":2`},
	{"call", "edge", "TestWhatCallersOfADeadEdgeHadAskedIsGivenUpOnce", `nothing came .*`},
	{"hold", "edge", "TestACallSurvivesThatRedisLosesEverything", `the answer is \[\]`},
	{"once", "edge", "TestACallOfANameIsDoneOnceAndAnsweredAtEveryEdge", `got .*"from":"anna".*, want nothing`},
	{"first", "edge", "TestNothingButTheFirstAnswerOfWhoWasAskedIsTheCalls", `From:mallory .*; want the start of bob's answer`},
	{"box,hold", "edge", "TestACallThatWasGivenUpEndsForWhoStillWaitsForIt", `the answer is \[\], .*; want STREAM_ABORTED`},
	{"turn", "edge", "TestANumberThatGoesIntoABoxWaitsForThoseBeforeIt", `nothing came .*"slow"`},
	{"act", "edge", "TestAnActWhoseAnswerIsLostIsDoneOnce", `has ended|want one of|want nothing`},
	{"address", "edge", "TestAnAddressIsOneAgents", `was given to both or neither: <nil>, <nil>`},
	{"adopt", "edge", "TestAnEdgeThatComesLateAdoptsNothing", `adopted twice`},
	{"rejoin", "edge/demux", "TestAReaderThatStandsStillLagsAloneAndCatchesUpWhileMoreComes", `part \d+ of "\w+": context deadline exceeded|got part "\d+" of "\w+", want \d+`},
	{"whole", "edge", "TestANewIDWaitsWhileRedisGathersWhatItLost", `got .*agent\.registered.*, want nothing`},
	{"order", "edge", "TestAPartSentAgainAfterARefusalLearnsThatItsStreamIsOver", `got .*"status":"stored".*\n\s*want .*UNAVAILABLE`},
}

// TestEachProtectionIsNeeded leaves out each protection: a test must fail without it, or nothing would show that it is
// needed. Whole clusters without them are internal/reliability's, in make chaos.
func TestEachProtectionIsNeeded(t *testing.T) {
	for _, name := range protections(t) {
		if !slices.ContainsFunc(needs, func(n need) bool { return slices.Contains(strings.Split(n.off, ","), name) }) {
			t.Errorf("no test is known to fail without %q", name)
		}
	}
	dir := build(t)
	for _, n := range needs {
		t.Run(n.off+"/"+n.test, func(t *testing.T) {
			t.Parallel()
			n.fails(t, dir)
		})
	}
}

// protections returns the names of all that a build with the tag sabotage can leave out.
func protections(t *testing.T) (names []string) {
	t.Helper()
	source, err := os.ReadFile("sabotage.go")
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range regexp.MustCompile(`= with\("(\w+)"\)`).FindAllSubmatch(source, -1) {
		names = append(names, string(m[1]))
	}
	if len(names) == 0 {
		t.Fatal("sabotage.go names no protection")
	}
	return names
}

// build builds the tests of every package that is needed, so that they can be sabotaged, into a folder.
func build(t *testing.T) (dir string) {
	t.Helper()
	dir = t.TempDir()
	args := []string{"test", "-c", "-vet=off", "-tags", "sabotage", "-o", dir + "/"}
	for _, n := range needs {
		if p := "../../" + n.pkg; !slices.Contains(args, p) {
			args = append(args, p)
		}
	}
	if out, err := exec.Command("go", args...).CombinedOutput(); err != nil {
		t.Fatalf("build the tests: %v\n%s", err, out)
	}
	return dir
}

// fails runs the test without the protections until it says what it then does, a few times at most: what goes wrong may
// need others to be quick. Its patience is short, as what is missing never comes.
func (n need) fails(t *testing.T, dir string) {
	t.Helper()
	var out []byte
	for range 5 {
		cmd := exec.Command(filepath.Join(dir, filepath.Base(n.pkg)+".test"), "-test.run", "^"+n.test+"$", "-test.timeout", "5m")
		cmd.Dir = "../../" + n.pkg
		cmd.Env = append(os.Environ(), "AGORA_SABOTAGE="+n.off, "AGORA_TEST_PATIENCE=5s")
		var err error
		if out, err = cmd.CombinedOutput(); err != nil && regexp.MustCompile(n.says).Match(out) {
			return
		}
	}
	t.Errorf("%s does not say %q without %s, but:\n%.2000s", n.test, n.says, n.off, out)
}
