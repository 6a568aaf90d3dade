//go:build oneseed

package simcluster

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// TestStories writes the stories of the seeds that the environment names to its folder, where two processes' can be compared.
func TestStories(t *testing.T) {
	dir := os.Getenv("STORIES")
	first, _ := strconv.ParseUint(os.Getenv("FIRST"), 10, 64)
	n, _ := strconv.ParseUint(os.Getenv("N"), 10, 64)
	for seed := first; dir != "" && seed < first+n; seed++ {
		if err := os.WriteFile(filepath.Join(dir, fmt.Sprint(seed)), []byte(tale(t, seed)), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

// tale is all that can be told of a seed's history.
func tale(t *testing.T, seed uint64) string {
	r := Play(t, MakePlan(seed))
	return fmt.Sprintln(strings.Join(r.Story, "\n"), r.Seen, r.Took, r.Failures)
}

func TestASeedIsTheSameHistoryWhateverWasPlayedBefore(t *testing.T) {
	first := tale(t, 1)
	tale(t, 2)
	if again := tale(t, 1); again != first {
		t.Errorf("the same seed is another history:\n%s", difference(first, again))
	}
}

// difference is where two tales part.
func difference(a, b string) string {
	as, bs := strings.Split(a, "\n"), strings.Split(b, "\n")
	for k := range min(len(as), len(bs)) {
		if as[k] != bs[k] {
			return fmt.Sprintf("line %d\n%s\n%s", k, as[k], bs[k])
		}
	}
	return "one ends sooner"
}
