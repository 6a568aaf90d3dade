package party

import (
	"fmt"
	"log/slog"
	"os"
	"slices"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/agora-relay/agora/presence"
)

func TestMain(m *testing.M) {
	presence.LogClient(slog.New(slog.DiscardHandler))
	goleak.VerifyTestMain(m)
}

// What the suite says of doors is true of the core that is behind them.
func TestTheCore(t *testing.T) {
	t.Parallel()
	Play(t, slices.Concat(Pairs(Core()), Pairs(REST())))
}

func TestWhatEachPairOfDoorsLeavesOutIsListed(t *testing.T) {
	const page = "testdata/left_out.txt"
	b := new(strings.Builder)
	for _, from := range Doors() {
		for _, to := range Doors() {
			p := Pair{from, to}
			out, all := p.leftOut()
			switch {
			case all:
				fmt.Fprintf(b, "%s: everything\n", p.Name())
			case len(out) == 0:
				fmt.Fprintf(b, "%s: nothing\n", p.Name())
			default:
				fmt.Fprintf(b, "%s:\n\t%s\n", p.Name(), strings.Join(out, "\n\t"))
			}
		}
	}
	if os.Getenv("AGORA_UPDATE_DOCS") != "" {
		if err := os.WriteFile(page, []byte(b.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	listed, err := os.ReadFile(page)
	if err != nil || string(listed) != b.String() {
		t.Errorf("%s does not list what is left out (%v); see that it may be, and write it anew with AGORA_UPDATE_DOCS=1. It should be\n%s", page, err, b)
	}
}

func TestScenariosAndTraitsHaveNames(t *testing.T) {
	if got := len(strings.Split(Everything.String(), "+")); 1<<got != int(Everything)+1 {
		t.Errorf("%d traits are named %s", got, Everything)
	}
	seen := map[string]bool{}
	for _, st := range stages() {
		for _, sc := range st.scenarios {
			if seen[sc.name] || sc.play == nil {
				t.Errorf("scenario %q stands there twice, or is none", sc.name)
			}
			seen[sc.name] = true
		}
	}
}
